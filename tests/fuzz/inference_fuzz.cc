// libFuzzer target: arbitrary requests of the Open Inference Protocol and tensors of predictions.
//
// The first byte selects how the rest is read: a serialised ModelInferRequest; a request made of likely parts; a tensor
// of a Predict call. Accepted requests are checked by independent arithmetic. Refused ones must be INVALID_ARGUMENT,
// without internals in the text.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "core/wire/inference_outputs.h"
#include "core/wire/inference_wire.h"
#include "server/predict/serving/draw_selection.h"

namespace {

using chainfleet::InferenceCall;
using chainfleet::InputTensor;
using chainfleet::InputType;
using inference::ModelInferRequest;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void CheckRefusal(const absl::Status& status, const ModelInferRequest& request) {
  const bool unknown = absl::IsNotFound(status) && request.model_version() == "0";
  Require(absl::IsInvalidArgument(status) || unknown, "a refusal is INVALID_ARGUMENT, of version 0 NOT_FOUND");
  const std::string text(status.message()), asked = request.SerializeAsString();
  Require(!text.empty(), "a refusal says why");
  for (const char* ours : {"chainfleet", "absl", "proto", "inference::", ".cc", "std::"}) {
    const bool named = text.find(ours) != std::string::npos;
    Require(!named || asked.find(ours) != std::string::npos, "a refusal names nothing of ours that was not asked for");
  }
}

// Returns the product of a shape; nullopt if a size is negative or the product is too large for memory.
std::optional<int64_t> Elements(const google::protobuf::RepeatedField<int64_t>& shape) {
  __int128 product = 1;
  bool zero = false;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    zero |= size == 0;
    if (!zero) product *= size;
    if (product > INT64_MAX) product = __int128{INT64_MAX} + 1;
  }
  if (zero) return 0;
  if (product > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(product);
}

template <typename T>
T At(const std::string& bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

bool Same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Returns the i-th value of raw bytes, by the compiler's own conversions.
float Expected(const std::string& datatype, const std::string& raw, size_t i) {
  if (datatype == "FP64") return static_cast<float>(At<double>(raw, i));
  if (datatype == "FP32") return At<float>(raw, i);
  const uint16_t bits = At<uint16_t>(raw, i);
  if (datatype == "BF16") return std::bit_cast<float>(uint32_t{bits} << 16);
  __fp16 half;
  std::memcpy(&half, &bits, sizeof half);
  return half;
}

void CheckInput(const ModelInferRequest& request, const InputTensor& input) {
  Require(request.inputs_size() == 1 && request.inputs(0).name() == "x", "one input, x");
  const auto& tensor = request.inputs(0);
  Require(std::equal(input.shape.begin(), input.shape.end(), tensor.shape().begin(), tensor.shape().end()),
          "its shape");
  const std::optional<int64_t> elements = Elements(tensor.shape());
  Require(elements.has_value(), "a shape that memory holds");
  const bool bytes = tensor.datatype() == "UINT8";
  Require(bytes == (input.type == InputType::kUint8), "its type");
  Require(static_cast<int64_t>(input.bytes.size()) == *elements * (bytes ? 1 : 4), "the bytes of its shape");
  Require(request.raw_input_contents_size() <= 1, "raw bytes of one input");
  if (request.raw_input_contents_size() == 0) return;
  const std::string& raw = request.raw_input_contents(0);
  if (bytes) return Require(input.bytes == raw, "raw bytes stay");
  for (size_t i = 0; i < static_cast<size_t>(*elements); ++i) {
    Require(Same(At<float>(input.bytes, i), Expected(tensor.datatype(), raw, i)), "the value that was sent");
  }
}

void CheckCall(const ModelInferRequest& request, const InferenceCall& call) {
  Require(call.model == request.model_name(), "the model's name");
  Require(call.version >= 0, "a version");
  Require(call.members >= 0 && call.every >= 0 && call.max_draws >= 0 && call.min_draws >= 0, "counts");
  Require(call.priority >= 0 && call.priority <= 2 && call.timeout > absl::ZeroDuration(), "priority and timeout");
  Require(std::ranges::all_of(call.chains, [](int32_t chain) { return chain >= 0; }), "chains");
  Require(std::ranges::all_of(call.quantiles, [](double level) { return level > 0 && level < 1; }), "quantiles");
  Require(static_cast<int>(call.outputs.size()) == request.outputs_size(), "outputs");
  for (const auto& [name, parameter] : request.parameters()) {
    if (name == "chains" || name == "quantiles" || name == "kinds") {
      const auto commas = std::ranges::count(parameter.string_param(), ',');
      const size_t values = name == "chains"  ? call.chains.size()
                            : name == "kinds" ? call.kinds.size()
                                              : call.quantiles.size();
      Require(values == static_cast<size_t>(commas) + 1, "as many values as the list has");
    }
  }
}

// Returns the averaged draws of two chains, by arithmetic without overflow.
void CheckSelection(const InferenceCall& call) {
  constexpr int64_t kDraws[] = {7, 2};
  std::vector<chainfleet::ChainDraws> chains;
  __int128 wanted = 0;
  for (const int64_t draws : kDraws) {
    chainfleet::Segment segment;
    segment.steps.resize(static_cast<size_t>(draws));
    chains.push_back({.chain = {"job-aaaaaa", static_cast<int32_t>(chains.size())}, .segments = {segment}});
    chains.back().num_draws = draws;
    const __int128 newest = call.members > 0 ? std::min(call.members, draws) : draws,
                   step = std::max<int64_t>(call.every, 1);
    wanted += (newest + step - 1) / step;
  }
  if (call.max_draws > 0) wanted = std::min<__int128>(wanted, call.max_draws);
  const std::vector<chainfleet::ChainDraws> chosen = chainfleet::SelectDraws(
      {.members = call.members, .every = call.every, .max_draws = call.max_draws}, {&chains[0], &chains[1]});
  Require(chainfleet::NumDraws(chosen) == wanted, "as many draws as were asked for");
}

// Returns whether a model of [3, 2] accepts `tensor`, by independent arithmetic.
void CheckAgainstModel(const InputTensor& tensor, const ModelInferRequest& request) {
  chainfleet::PredictPlan plan;
  plan.job = "job-aaaaaa";
  plan.input_shape = {3, 2};
  const absl::Status status = chainfleet::CheckInputs(tensor, plan);
  if (!status.ok()) CheckRefusal(status, request);
  const size_t size = tensor.type == InputType::kUint8 ? 1 : 4;
  bool fits = tensor.shape.size() == 3 && tensor.shape[0] >= 1 && tensor.shape[1] == 3 && tensor.shape[2] == 2;
  fits = fits && static_cast<__int128>(tensor.shape[0]) * 6 * size == tensor.bytes.size();
  for (size_t i = 0; fits && size == 4 && i < tensor.bytes.size() / 4; ++i)
    fits = std::isfinite(At<float>(tensor.bytes, i));
  Require(fits == status.ok(), "inputs are taken if and only if they fit and are finite");
}

// Sends the tensor as each of two inputs of a network.
void TryColumns(ModelInferRequest request) {
  if (request.inputs_size() != 1 || request.raw_input_contents_size() > 1) return;
  *request.add_inputs() = request.inputs(0);
  request.mutable_inputs(0)->set_name("a");
  request.mutable_inputs(1)->set_name("b");
  if (request.raw_input_contents_size() == 1) {
    request.add_raw_input_contents(std::string(request.raw_input_contents(0)));
  }
  const auto call = chainfleet::FromProto(request, {{"b", "int64", {3, 2}}, {"a", "float32", {3, 2}}});
  if (!call.ok()) return CheckRefusal(call.status(), request);
  const InputTensor& input = call->input;
  Require(input.type == InputType::kFloat32 && input.shape.size() == 2 && input.shape[1] == 12, "rows of both inputs");
  Require(static_cast<int64_t>(input.bytes.size()) == input.shape[0] * 48, "all bytes of the rows");
  for (size_t i = 0; i < input.bytes.size() / 4; ++i) {
    Require(Same(At<float>(input.bytes, i), At<float>(input.bytes, i % 12 < 6 ? i + 6 : i - 6)), "both are the same");
  }
}

// `valid`: the request is known to be good.
void Try(const ModelInferRequest& request, bool valid) {
  TryColumns(request);
  const absl::StatusOr<InferenceCall> call = chainfleet::FromProto(request);
  if (!call.ok()) {
    CheckRefusal(call.status(), request);
    return Require(!valid, "a good request is taken");
  }
  CheckInput(request, call->input);
  CheckCall(request, *call);
  CheckSelection(*call);
  CheckAgainstModel(call->input, request);
  for (const chainfleet::Targets& targets :
       {chainfleet::Targets(chainfleet::Numbers()), chainfleet::Targets(chainfleet::Classes{10})}) {
    const absl::Status status =
        chainfleet::CheckOutputs(call->outputs, targets, !call->quantiles.empty(), call->HasConformal());
    if (!status.ok()) CheckRefusal(status, request);
  }
}

struct Datatype {
  const char* name;
  size_t bytes;
};
constexpr Datatype kDatatypes[] = {{"UINT8", 1}, {"FP16", 2},  {"BF16", 2}, {"FP32", 4}, {"FP64", 8},
                                   {"INT64", 8}, {"INT32", 4}, {"BOOL", 1}, {"", 1}};

void AddContents(FuzzedDataProvider* fuzz, inference::InferTensorContents* contents) {
  for (int i = fuzz->ConsumeIntegralInRange(0, 8); i > 0; --i) {
    switch (fuzz->ConsumeIntegralInRange(0, 3)) {
      case 0:
        contents->add_fp32_contents(fuzz->ConsumeFloatingPoint<float>());
        break;
      case 1:
        contents->add_fp64_contents(fuzz->ConsumeFloatingPoint<double>());
        break;
      case 2:
        contents->add_uint_contents(fuzz->ConsumeIntegral<uint32_t>());
        break;
      default:
        contents->add_bytes_contents(fuzz->ConsumeRandomLengthString(8));
    }
  }
}

void AddParameter(FuzzedDataProvider* fuzz, ModelInferRequest* request) {
  constexpr const char* kNames[] = {"kinds",     "chains",   "members",   "every",          "max_draws",
                                    "min_draws", "anytime",  "quantiles", "include_failed", "point",
                                    "timeout",   "priority", "wish"};
  auto& parameter = (*request->mutable_parameters())[fuzz->PickValueInArray(kNames)];
  switch (fuzz->ConsumeIntegralInRange(0, 4)) {
    case 0:
      return parameter.set_bool_param(fuzz->ConsumeBool());
    case 1:
      return parameter.set_int64_param(fuzz->ConsumeIntegral<int64_t>());
    case 2:
      return parameter.set_uint64_param(fuzz->ConsumeIntegral<uint64_t>());
    case 3:
      return parameter.set_double_param(fuzz->ConsumeFloatingPoint<double>());
    default:
      return parameter.set_string_param(fuzz->ConsumeRandomLengthString(24));
  }
}

// Returns whether the request is known to be good.
bool Build(FuzzedDataProvider* fuzz, ModelInferRequest* request) {
  request->set_model_name("job");
  bool good = true;
  if (fuzz->ConsumeIntegralInRange(0, 3) == 0) {
    request->set_model_version(fuzz->ConsumeRandomLengthString(6));
    good = false;
  }
  auto* tensor = request->add_inputs();
  tensor->set_name("x");
  const Datatype datatype = fuzz->PickValueInArray(kDatatypes);
  tensor->set_datatype(datatype.name);
  size_t elements = 1;
  for (int i = fuzz->ConsumeIntegralInRange(1, 3); i > 0; --i) {
    const int64_t size = fuzz->ConsumeIntegralInRange<int64_t>(0, 6);
    tensor->add_shape(size);
    elements *= static_cast<size_t>(size);
  }
  if (fuzz->ConsumeIntegralInRange(0, 7) == 0) {
    tensor->add_shape(fuzz->ConsumeIntegral<int64_t>());
    good = false;
  }
  for (int i = fuzz->ConsumeIntegralInRange(0, 3); i > 0; --i, good = false) AddParameter(fuzz, request);
  if (fuzz->ConsumeIntegralInRange(0, 3) == 0) {
    AddContents(fuzz, tensor->mutable_contents());
    good = false;
  }
  if (fuzz->ConsumeIntegralInRange(0, 7) == 0) {
    request->add_raw_input_contents(fuzz->ConsumeRandomLengthString(64));
    return false;
  }
  std::string raw = fuzz->ConsumeBytesAsString(elements * datatype.bytes);
  raw.resize(elements * datatype.bytes);
  const std::string name = datatype.name;  // whole numbers are for inputs by their names
  good = good && !name.empty() && !name.starts_with("INT") && name != "BOOL";
  for (size_t i = 0; datatype.bytes == 8 && i < elements; ++i) {  // values beyond float32 are refused
    const double value = At<double>(raw, i);
    good = good && (!std::isfinite(value) || std::isfinite(static_cast<float>(value)));
  }
  request->add_raw_input_contents(std::move(raw));
  return good;
}

void TryTensor(FuzzedDataProvider* fuzz) {
  InputTensor tensor;
  tensor.type = fuzz->ConsumeBool() ? InputType::kUint8 : InputType::kFloat32;
  const bool likely = fuzz->ConsumeBool();
  tensor.shape.push_back(likely ? fuzz->ConsumeIntegralInRange<int64_t>(0, 8) : fuzz->ConsumeIntegral<int64_t>());
  for (int i = fuzz->ConsumeIntegralInRange(0, 3); i > 0; --i) tensor.shape.push_back(fuzz->ConsumeIntegral<int64_t>());
  if (likely) tensor.shape = {tensor.shape[0], 3, 2};
  tensor.bytes = likely ? fuzz->ConsumeBytesAsString(static_cast<size_t>(tensor.shape[0]) * 24)
                        : fuzz->ConsumeRemainingBytesAsString();
  if (likely && fuzz->ConsumeBool())
    tensor.bytes.resize(static_cast<size_t>(tensor.shape[0]) * (tensor.type == InputType::kUint8 ? 6 : 24));
  CheckAgainstModel(tensor, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ModelInferRequest request;
  if (data[0] == 'w') {
    if (request.ParseFromArray(data + 1, static_cast<int>(size - 1))) Try(request, false);
    return 0;
  }
  FuzzedDataProvider fuzz(data + 1, size - 1);
  if (data[0] == 't') {
    TryTensor(&fuzz);
  } else {
    const bool good = Build(&fuzz, &request);
    Try(request, good);
  }
  return 0;
}
