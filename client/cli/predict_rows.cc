#include "client/cli/predict_rows.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/limits.h"
#include "core/wire/predict_wire.h"

namespace chainfleet {
namespace {

constexpr int64_t kRequestBytes = limits::kMiB;  // bytes of inputs
constexpr int64_t kReplyBytes = limits::kMaxMessageBytes / 2;
constexpr int64_t kFirstRows = 256;  // the first request's rows; its reply tells the number of classes

// The number of rows for a request like the one of `reply`.
int64_t RowsPerRequest(const Prediction& reply, int64_t row_bytes) {
  int64_t reply_row_bytes = 2 * static_cast<int64_t>(sizeof(double)) * ScoreValues(reply.targets);
  reply_row_bytes += static_cast<int64_t>(2 * reply.quantiles.size() * sizeof(double)) / reply.num_rows;
  for (const Members& members : reply.members) {
    const auto add = [&](const char*, const std::vector<float>& values) {
      reply_row_bytes += static_cast<int64_t>(values.size() * sizeof(float)) / reply.num_rows;
    };
    std::visit([&](const auto& outputs) { VisitArrays(outputs, add); }, members.outputs);
  }
  return std::max<int64_t>(1, std::min(kRequestBytes / row_bytes, kReplyBytes / reply_row_bytes));
}

}  // namespace

absl::Status PredictRows(Client* client, const Array& inputs, v1::PredictRequest* request,
                         const std::function<absl::Status(Prediction part)>& on_part) {
  v1::Tensor* tensor = request->mutable_inputs();
  tensor->set_type(inputs.type == ArrayType::kUint8 ? v1::UINT8 : v1::FLOAT32);
  tensor->mutable_shape()->Assign(inputs.shape.begin(), inputs.shape.end());
  const int64_t num_rows = inputs.shape[0];
  const int64_t row_bytes = std::max<int64_t>(1, static_cast<int64_t>(inputs.bytes.size()) / num_rows);
  int64_t at_once = std::clamp<int64_t>(kRequestBytes / row_bytes, 1, request->member_probabilities() ? 1 : kFirstRows);
  for (int64_t row = 0; row < num_rows;) {
    const int64_t count = std::min(at_once, num_rows - row);
    tensor->set_shape(0, count);
    tensor->set_data(inputs.bytes.substr(static_cast<size_t>(row * row_bytes), static_cast<size_t>(count * row_bytes)));
    CHAINFLEET_ASSIGN_OR_RETURN(const v1::PredictResponse reply, client->Predict(*request));
    CHAINFLEET_ASSIGN_OR_RETURN(Prediction part, FromProto(reply));
    at_once = RowsPerRequest(part, row_bytes);
    row += count;
    // Use the same job and draws for all rows, even if draws are committed or jobs created meanwhile.
    request->set_job(part.job);
    request->mutable_selection()->set_version(part.version);
    CHAINFLEET_RETURN_IF_ERROR(on_part(std::move(part)));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
