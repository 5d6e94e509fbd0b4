#include "server/rpc/gateway/infer_json.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/http/http_limits.h"

namespace chainfleet {
namespace {

using nlohmann::json;

// Levels of {"inputs": [{"data": [...]}]}, as the parser counts them.
constexpr int kBodyKey = 1, kInput = 2, kInputKey = 3;

// Takes the elements of tensors out of what the parser keeps: a document of 16 MiB would take 300 MiB.
class DataFilter {
 public:
  explicit DataFilter(InferJson* out) : out_(out) {}

  // True if the parser keeps what it has parsed.
  bool Keep(int depth, json::parse_event_t event, const json& parsed) {
    if (!status_.ok()) return false;
    if (depth > limits::kJsonDepth)
      return Refuse(absl::StrCat("is nested deeper than ", limits::kJsonDepth, " levels"));
    if (in_data_) return KeepData(depth, event, parsed);
    if (++values_ > limits::kJsonValues) return Refuse(absl::StrCat("has more than ", limits::kJsonValues, " values"));
    Locate(depth, event, parsed);
    return true;
  }

  const absl::Status& status() const { return status_; }

 private:
  bool Refuse(const std::string& why) {
    status_ = absl::InvalidArgumentError(absl::StrCat("the JSON body ", why));
    return false;
  }

  void Locate(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::key && depth == kBodyKey) {
      is_inputs_ = parsed == "inputs";
      if (is_inputs_) out_->data.clear();  // if a key is given twice, the last value counts
    }
    if (!is_inputs_) return;
    if (event == json::parse_event_t::object_start && depth == kInput) out_->data.emplace_back();
    if (event == json::parse_event_t::key && depth == kInputKey) in_data_ = parsed == "data" && !out_->data.empty();
    if (in_data_) out_->data.back().clear();
  }

  bool KeepData(int depth, json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::array_start:
        return true;
      case json::parse_event_t::array_end:
        in_data_ = depth > kInputKey;
        return !in_data_;
      case json::parse_event_t::value:
        if (!(parsed.is_number() || parsed.is_boolean()) || depth == kInputKey) break;
        if (parsed.is_boolean()) out_->with_bools.insert(out_->data.size() - 1);
        out_->data.back().push_back(parsed.is_boolean() ? parsed.get<bool>() : parsed.get<double>());
        return false;
      default:
        break;
    }
    return Refuse(absl::StrCat("has data that is no array of numbers in input ", out_->data.size() - 1));
  }

  InferJson* const out_;
  absl::Status status_;
  bool is_inputs_ = false, in_data_ = false;
  int values_ = 0;
};

}  // namespace

absl::StatusOr<InferJson> ParseInferJson(std::string_view text) {
  InferJson out;
  DataFilter filter(&out);
  try {
    out.body = json::parse(text.begin(), text.end(), [&](int depth, json::parse_event_t event, const json& parsed) {
      return filter.Keep(depth, event, parsed);
    });
  } catch (const json::exception& error) {
    CHAINFLEET_RETURN_IF_ERROR(filter.status());
    const std::string why = error.what();  // "[json.exception...] parse error at line 1, column 2: ..."
    return absl::InvalidArgumentError(absl::StrCat("the body is no JSON: ", why.substr(why.find("] ") + 2)));
  }
  CHAINFLEET_RETURN_IF_ERROR(filter.status());
  if (!out.body.is_object()) return absl::InvalidArgumentError("the body is no JSON object");
  return out;
}

}  // namespace chainfleet
