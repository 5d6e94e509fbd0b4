// An inference of the Open Inference Protocol over HTTP, with its binary tensors.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "inference/grpc_service.pb.h"
#include "server/http/error_reply.h"
#include "server/http/http_limits.h"
#include "server/rpc/gateway/infer_json.h"
#include "server/rpc/gateway/plain_json.h"
#include "server/rpc/gateway/translation.h"

namespace chainfleet {
namespace {

using nlohmann::json;
using InferRequest = inference::ModelInferRequest;
using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

constexpr char kJsonLength[] = "inference-header-content-length",
               kJsonLengthReply[] = "Inference-Header-Content-Length";

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Null if there is no such key.
const json* Find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

absl::StatusOr<std::string> TextOf(const json& object, const char* key, const std::string& where, bool is_needed) {
  const json* const text = Find(object, key);
  if (text == nullptr && !is_needed) return "";
  if (text != nullptr && text->is_string()) return text->get<std::string>();
  return Invalid(where, key, text == nullptr ? " is missing" : " is no string");
}

// Elements of an array of objects; none if there is no such key.
absl::StatusOr<json> ObjectsOf(const json& body, const char* key) {
  const json* const list = Find(body, key);
  if (list == nullptr) return json::array();
  const bool fits = list->is_array() && std::ranges::all_of(*list, [](const json& one) { return one.is_object(); });
  if (!fits) return Invalid("'", key, "' is no array of objects");
  return *list;
}

absl::Status TakeParameter(const std::string& name, const json& value, Parameters* parameters) {
  inference::InferParameter parameter;
  if (value.is_boolean()) {
    parameter.set_bool_param(value.get<bool>());
  } else if (value.is_string()) {
    parameter.set_string_param(value.get<std::string>());
  } else if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    parameter.set_uint64_param(value.get<uint64_t>());
  } else if (value.is_number_integer()) {
    parameter.set_int64_param(value.get<int64_t>());
  } else if (value.is_number()) {
    parameter.set_double_param(value.get<double>());
  } else {
    return Invalid("parameter '", name, "' is no string, number or bool");
  }
  (*parameters)[name] = std::move(parameter);
  return absl::OkStatus();
}

// The parameters of `object`, without those of the binary extension, which are for HTTP alone.
absl::StatusOr<json> TakeParameters(const json& object, const char* binary_name, Parameters* parameters) {
  const json* const given = Find(object, "parameters");
  if (given == nullptr) return json();
  if (!given->is_object()) return Invalid("'parameters' is no object");
  for (const auto& [name, value] : given->items()) {
    if (name != binary_name) CHAINFLEET_RETURN_IF_ERROR(TakeParameter(name, value, parameters));
  }
  const json* const binary = Find(*given, binary_name);
  return binary == nullptr ? json() : *binary;
}

absl::StatusOr<bool> TakeSwitch(const json& object, const char* name, bool fallback, Parameters* parameters) {
  CHAINFLEET_ASSIGN_OR_RETURN(const json value, TakeParameters(object, name, parameters));
  if (!value.is_null() && !value.is_boolean()) return Invalid("parameter '", name, "' is no bool");
  return value.is_boolean() ? value.get<bool>() : fallback;
}

absl::Status TakeShape(const json& input, const std::string& where, InferRequest::InferInputTensor* tensor) {
  const json* const shape = Find(input, "shape");
  if (shape == nullptr || !shape->is_array()) return Invalid(where, "shape is no array");
  for (const json& size : *shape) {
    const bool fits =
        size.is_number_integer() &&
        !(size.is_number_unsigned() && size.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()});
    if (!fits) return Invalid(where, "shape has ", size.dump(), ", which is no integer");
    tensor->add_shape(size.get<int64_t>());
  }
  return absl::OkStatus();
}

// Elements of other datatypes are refused by their datatype, later.
absl::Status TakeElements(const std::vector<double>& data, const std::string& where,
                          InferRequest::InferInputTensor* tensor) {
  inference::InferTensorContents* const contents = tensor->mutable_contents();
  for (const double value : data) {
    if (tensor->datatype() == "UINT8") {
      if (value < 0 || value > 255 || value != std::floor(value)) {
        return Invalid(where, "data of UINT8 has the value ", value);
      }
      contents->add_uint_contents(static_cast<uint32_t>(value));
    } else if (tensor->datatype() == "INT64" || tensor->datatype() == "INT32" || tensor->datatype() == "BOOL") {
      const double most = tensor->datatype() == "BOOL" ? 1 : std::numeric_limits<int32_t>::max();
      if (value < (most > 1 ? -most : 0) || value > most || value != std::floor(value)) {
        return Invalid(where, "data of ", tensor->datatype(), " has the value ", value);
      }
      if (tensor->datatype() == "INT64") contents->add_int64_contents(static_cast<int64_t>(value));
      if (tensor->datatype() == "INT32") contents->add_int_contents(static_cast<int32_t>(value));
      if (tensor->datatype() == "BOOL") contents->add_bool_contents(value != 0);
    } else if (tensor->datatype() == "FP32") {
      if (std::fabs(value) > std::numeric_limits<float>::max()) {
        return Invalid(where, "data has a value beyond the range of float32");
      }
      contents->add_fp32_contents(static_cast<float>(value));
    } else {
      contents->add_fp64_contents(value);
    }
  }
  return absl::OkStatus();
}

template <typename Number>
void AppendNumber(Number value, std::string* out) {
  if (!std::isfinite(value)) {  // as protobuf's JSON mapping writes them
    out->append(std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return;
  }
  char text[32];
  out->append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

template <typename Number>
void AppendNumbers(const std::string& bytes, std::string* out) {
  for (size_t i = 0; i * sizeof(Number) < bytes.size(); ++i) {
    Number value;
    std::memcpy(&value, bytes.data() + i * sizeof(Number), sizeof value);
    if (i > 0) out->push_back(',');
    AppendNumber(value, out);
  }
}

// The elements of a tensor of BYTES, each behind its length.
void AppendTexts(const std::string& bytes, std::string* out) {
  uint32_t length = 0;
  for (size_t at = 0; at < bytes.size(); at += length) {
    if (at > 0) out->push_back(',');
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    out->append(json(bytes.substr(at, length)).dump());
  }
}

// The text of a JSON object, open for more members.
std::string OpenObject(const nlohmann::ordered_json& object) {
  std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace);
  text.pop_back();
  if (text.size() > 1) text.push_back(',');
  return text;
}

class InferTranslation final : public Translation {
 public:
  absl::Status Read(WebRequest* request, google::protobuf::Message* message) override {
    auto* const infer = static_cast<InferRequest*>(message);
    std::string_view text = request->body;
    if (const std::string given = request->head.Header(kJsonLength); !given.empty()) {
      size_t length = 0;
      if (!absl::SimpleAtoi(given, &length) || length > text.size()) {
        return Invalid(kJsonLengthReply, " is '", given,
                       "': the length of the JSON at the start of the body is expected");
      }
      text = text.substr(0, length);
    }
    binary_ = std::string_view(request->body).substr(text.size());
    const auto reading = static_cast<int64_t>(binary_.size() + text.size() * limits::kJsonFactor);
    if (!request->held->Add(reading)) return NoRoom();
    CHAINFLEET_ASSIGN_OR_RETURN(const InferJson parsed, ParseInferJson(text));
    CHAINFLEET_ASSIGN_OR_RETURN(*infer->mutable_id(), TextOf(parsed.body, "id", "", false));
    CHAINFLEET_ASSIGN_OR_RETURN(all_binary_,
                                TakeSwitch(parsed.body, "binary_data_output", false, infer->mutable_parameters()));
    CHAINFLEET_RETURN_IF_ERROR(ReadInputs(parsed, infer));
    return ReadOutputs(parsed.body, infer);
  }

  WebReply Write(const google::protobuf::Message&, const google::protobuf::Message& message) override {
    const auto& infer = static_cast<const inference::ModelInferResponse&>(message);
    nlohmann::ordered_json head = PlainJson(infer, /*defaults=*/false);
    head.erase("outputs");
    std::string json = absl::StrCat(OpenObject(head), "\"outputs\":["), binary;
    for (int i = 0; i < infer.outputs_size(); ++i) {
      if (i > 0) json.push_back(',');
      WriteOutput(infer.outputs(i), infer.raw_output_contents(i), &json, &binary);
    }
    json.append("]}");
    if (binary.empty()) return {.body = std::move(json)};
    WebReply reply{.content_type = "application/octet-stream"};
    reply.headers.emplace_back(kJsonLengthReply, absl::StrCat(json.size()));
    reply.body = std::move(json) + binary;
    return reply;
  }

 private:
  absl::Status ReadInputs(const InferJson& parsed, InferRequest* infer) {
    CHAINFLEET_ASSIGN_OR_RETURN(const json inputs, ObjectsOf(parsed.body, "inputs"));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string where = absl::StrCat("inputs[", i, "].");
      InferRequest::InferInputTensor* const tensor = infer->add_inputs();
      CHAINFLEET_ASSIGN_OR_RETURN(*tensor->mutable_name(), TextOf(inputs[i], "name", where, true));
      CHAINFLEET_ASSIGN_OR_RETURN(*tensor->mutable_datatype(), TextOf(inputs[i], "datatype", where, true));
      CHAINFLEET_RETURN_IF_ERROR(TakeShape(inputs[i], where, tensor));
      CHAINFLEET_ASSIGN_OR_RETURN(const json size,
                                  TakeParameters(inputs[i], "binary_data_size", tensor->mutable_parameters()));
      if (size.is_null()) {
        if (parsed.with_bools.contains(i) && tensor->datatype() != "BOOL") {
          return Invalid(where, "data of ", tensor->datatype(), " has true or false");
        }
        CHAINFLEET_RETURN_IF_ERROR(TakeElements(parsed.data[i], where, tensor));
        continue;
      }
      if (!size.is_number_unsigned() || size.get<uint64_t>() > binary_.size()) {
        return Invalid(where, "parameters.binary_data_size is ", size.dump(), ", and ", binary_.size(),
                       " bytes are left in the body");
      }
      infer->add_raw_input_contents(std::string(binary_.substr(0, size.get<size_t>())));
      binary_.remove_prefix(size.get<size_t>());
    }
    if (binary_.empty()) return absl::OkStatus();
    return Invalid("the body has ", binary_.size(), " bytes after the last binary tensor");
  }

  absl::Status ReadOutputs(const json& body, InferRequest* infer) {
    CHAINFLEET_ASSIGN_OR_RETURN(const json outputs, ObjectsOf(body, "outputs"));
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto* const output = infer->add_outputs();
      CHAINFLEET_ASSIGN_OR_RETURN(*output->mutable_name(),
                                  TextOf(outputs[i], "name", absl::StrCat("outputs[", i, "]."), true));
      CHAINFLEET_ASSIGN_OR_RETURN(const bool is_binary,
                                  TakeSwitch(outputs[i], "binary_data", all_binary_, output->mutable_parameters()));
      is_binary_[output->name()] = is_binary;
    }
    return absl::OkStatus();
  }

  void WriteOutput(const inference::ModelInferResponse::InferOutputTensor& output, const std::string& bytes,
                   std::string* json, std::string* binary) const {
    nlohmann::ordered_json head = PlainJson(output, /*defaults=*/false);
    const auto asked = is_binary_.find(output.name());
    if (asked == is_binary_.end() ? all_binary_ : asked->second) {
      head["parameters"]["binary_data_size"] = bytes.size();
      absl::StrAppend(json, head.dump());
      absl::StrAppend(binary, bytes);
      return;
    }
    absl::StrAppend(json, OpenObject(head), "\"data\":[");
    if (output.datatype() == "BYTES") {
      AppendTexts(bytes, json);
    } else if (output.datatype() == "BOOL") {
      absl::StrAppend(json, absl::StrJoin(bytes, ",", [](std::string* out, char value) {
                        out->append(value != 0 ? "true" : "false");
                      }));
    } else {
      output.datatype() == "FP32" ? AppendNumbers<float>(bytes, json) : AppendNumbers<double>(bytes, json);
    }
    json->append("]}");
  }

  std::string_view binary_;                // part of the body that is not taken yet
  bool all_binary_ = false;                // an output's own parameter overrides it
  std::map<std::string, bool> is_binary_;  // by output
};

}  // namespace

std::unique_ptr<Translation> MakeInferTranslation() { return std::make_unique<InferTranslation>(); }

}  // namespace chainfleet
