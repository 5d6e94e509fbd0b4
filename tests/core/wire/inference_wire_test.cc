#include "core/wire/inference_wire.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "core/wire/inference_outputs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string Raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::vector<float> Floats(const InputTensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

inference::ModelInferRequest Request(const std::string& datatype, const std::vector<int64_t>& shape) {
  inference::ModelInferRequest request;
  request.set_model_name("job");
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype(datatype);
  input->mutable_shape()->Add(shape.begin(), shape.end());
  return request;
}

template <typename T>
absl::StatusOr<InferenceCall> Parse(const std::string& datatype, const std::vector<int64_t>& shape,
                                    const std::vector<T>& values) {
  inference::ModelInferRequest request = Request(datatype, shape);
  request.add_raw_input_contents(Raw(values));
  return FromProto(request);
}

void ExpectRefused(const inference::ModelInferRequest& request, const std::string& words) {
  const auto call = FromProto(request);
  EXPECT_EQ(call.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(call.status().message()), HasSubstr(words));
}

TEST(InferenceWire, ReadsHalfPrecisionExactly) {
  // 1, -2, the largest, the least normal, the least subnormal, infinity.
  const auto half = Parse<uint16_t>("FP16", {1, 6}, {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x7c00});
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_EQ(half->input.type, InputType::kFloat32);
  EXPECT_THAT(Floats(half->input), ElementsAre(1.f, -2.f, 65504.f, std::ldexp(1.f, -14), std::ldexp(1.f, -24),
                                               std::numeric_limits<float>::infinity()));
  const auto brain = Parse<uint16_t>("BF16", {1, 3}, {0x3f80, 0xc000, 0x0001});
  ASSERT_TRUE(brain.ok()) << brain.status();
  EXPECT_THAT(Floats(brain->input), ElementsAre(1.f, -2.f, std::ldexp(1.f, -133)));
}

TEST(InferenceWire, ReadsContentsAsItReadsRawBytes) {
  inference::ModelInferRequest request = Request("FP64", {2, 1});
  for (const double value : {0.5, -1.25}) request.mutable_inputs(0)->mutable_contents()->add_fp64_contents(value);
  EXPECT_THAT(Floats(FromProto(request)->input), ElementsAre(0.5f, -1.25f));
  request = Request("UINT8", {1, 2});
  for (const uint32_t value : {7u, 255u}) request.mutable_inputs(0)->mutable_contents()->add_uint_contents(value);
  EXPECT_EQ(FromProto(request)->input.bytes, "\x07\xff");
  EXPECT_EQ(FromProto(request)->input.type, InputType::kUint8);
  request.mutable_inputs(0)->mutable_contents()->set_uint_contents(1, 256);
  ExpectRefused(request, "256");
}

TEST(InferenceWire, RefusesTensorsThatContradictThemselves) {
  inference::ModelInferRequest request = Request("FP32", {2, 2});
  ExpectRefused(request, "0 bytes where 4 elements");
  request.add_raw_input_contents(std::string(15, 'a'));
  ExpectRefused(request, "15 bytes");
  request.set_raw_input_contents(0, std::string(16, 'a'));
  EXPECT_TRUE(FromProto(request).ok());
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  ExpectRefused(request, "give one of them");
  request.mutable_inputs(0)->clear_contents();
  request.add_raw_input_contents("");
  ExpectRefused(request, "2 entries for 1 input");
}

TEST(InferenceWire, RefusesShapesThatNoMemoryHolds) {
  const int64_t huge = int64_t{1} << 33;
  ExpectRefused(Request("FP32", {huge, huge}), "too many elements");
  ExpectRefused(Request("FP32", {-1, 2}), "negative");
  ExpectRefused(Request("FP32", {int64_t{1} << 62}), "elements");
}

TEST(InferenceWire, RefusesDatatypesAndValuesItCannotKeep) {
  ExpectRefused(Request("INT64", {1}), "'INT64'");
  EXPECT_THAT(std::string(Parse<double>("FP64", {1}, {1e39}).status().message()), HasSubstr("float32"));
  inference::ModelInferRequest request = Request("FP32", {1});
  request.mutable_inputs(0)->mutable_contents()->add_fp64_contents(1);
  ExpectRefused(request, "contents of another datatype");
}

TEST(InferenceWire, TakesOneInputCalledX) {
  inference::ModelInferRequest request = Request("FP32", {1});
  request.mutable_inputs(0)->set_name("image");
  ExpectRefused(request, "'image'");
  ExpectRefused(inference::ModelInferRequest(), "one input");
}

// Inputs that are side by side in a row, by their names, in any order.
class InferenceColumns : public ::testing::Test {
 protected:
  InferenceColumns() {
    const auto add = [&](const char* name, const char* datatype, const std::vector<int64_t>& shape) {
      auto* input = request_.add_inputs();
      input->set_name(name);
      input->set_datatype(datatype);
      input->mutable_shape()->Add(shape.begin(), shape.end());
      return input->mutable_contents();
    };
    auto* age = add("age", "FP64", {2});
    for (const double value : {0.5, 1.5}) age->add_fp64_contents(value);
    auto* ids = add("ids", "INT64", {2, 2, 1});
    for (const int64_t value : {3, 1 << 24, -5, 7}) ids->add_int64_contents(value);
    auto* mask = add("mask", "BOOL", {2, 1});
    for (const bool value : {true, false}) mask->add_bool_contents(value);
  }
  void ExpectRefused(const std::string& words) {
    const auto call = FromProto(request_, columns_);
    EXPECT_EQ(call.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(call.status().message()), HasSubstr(words));
  }

  const std::vector<TensorSignature> columns_ = {
      {"ids", "int64", {2, 1}}, {"mask", "bool", {1}}, {"age", "float32", {}}};
  inference::ModelInferRequest request_;
};

TEST_F(InferenceColumns, BecomeRowsOfTheDataSet) {
  const auto call = FromProto(request_, columns_);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_THAT(call->input.shape, ElementsAre(2, 4));
  EXPECT_THAT(Floats(call->input), ElementsAre(3, 1 << 24, 1, 0.5, -5, 7, 0, 1.5));
  for (auto& input : *request_.mutable_inputs()) input.clear_contents();
  request_.add_raw_input_contents(Raw<double>({0.5, 1.5}));
  request_.add_raw_input_contents(Raw<int64_t>({3, 1 << 24, -5, 7}));
  request_.add_raw_input_contents(std::string("\1\0", 2));
  const auto raw = FromProto(request_, columns_);
  ASSERT_TRUE(raw.ok()) << raw.status();
  EXPECT_EQ(raw->input.bytes, call->input.bytes);
  request_.mutable_inputs(1)->set_datatype("INT32");
  request_.set_raw_input_contents(1, Raw<int32_t>({3, 1 << 24, -5, 7}));
  EXPECT_EQ(FromProto(request_, columns_)->input.bytes, call->input.bytes);
  request_.mutable_inputs(1)->set_datatype("UINT8");
  request_.set_raw_input_contents(1, Raw<uint8_t>({3, 4, 5, 255}));
  EXPECT_THAT(Floats(FromProto(request_, columns_)->input), ElementsAre(3, 4, 1, 0.5, 5, 255, 0, 1.5));
}

TEST_F(InferenceColumns, ComeAllAndOnceWithAsManyRows) {
  EXPECT_THAT(std::string(FromProto(request_).status().message()), HasSubstr("one input, 'x'"));
  request_.mutable_inputs(0)->set_name("mask");
  ExpectRefused("['mask', 'ids', 'mask']: ['ids', 'mask', 'age'], or rows of all of them as one input, 'x'");
  request_.mutable_inputs(0)->set_name("age");
  request_.mutable_inputs(0)->mutable_shape()->Add(1);
  ExpectRefused("input 'age' has shape [2, 1]: [2] is expected");
  request_.mutable_inputs(0)->mutable_shape()->Truncate(1);
  request_.mutable_inputs(1)->mutable_contents()->set_int64_contents(0, (1 << 24) + 1);
  ExpectRefused("input 'ids' has a whole number beyond 2^24");
  request_.mutable_inputs(1)->mutable_contents()->set_int64_contents(0, 1);
  request_.add_raw_input_contents("");
  ExpectRefused("raw_input_contents has 1 entries for 3 inputs");
  request_.clear_raw_input_contents();
  for (auto& input : *request_.mutable_inputs()) input.set_shape(0, (1 << 20) + 1);
  ExpectRefused("the inputs have 1048577 rows of 16 bytes as float32: send at most 1048576");
  for (auto& input : *request_.mutable_inputs()) input.set_shape(0, -1);
  ExpectRefused("input 'ids' has a negative size in its shape: -1");
  request_.mutable_inputs()->RemoveLast();
  ExpectRefused("['age', 'ids']");
  request_.clear_inputs();
  ExpectRefused("the inputs are []");
}

TEST_F(InferenceColumns, MayComeAsRows) {
  const inference::ModelInferRequest rows = Request("FP32", {0, 4});
  EXPECT_TRUE(FromProto(rows, columns_).ok());
  for (auto& input : *request_.mutable_inputs()) {
    input.set_shape(0, 0);
    input.clear_contents();
  }
  const auto none = FromProto(request_, columns_);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->input.shape, ElementsAre(0, 4));
}

TEST(InferenceWire, ListsInputsByName) {
  const auto inputs =
      InferenceInputs({4}, InputType::kFloat32, {{"ids", "int64", {2}}, {"m", "bool", {1}}, {"z", "float32", {}}});
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].datatype + inputs[1].datatype + inputs[2].datatype, "INT64BOOLFP32");
  EXPECT_EQ(InferenceInputs({4}, InputType::kUint8, {{"ids", "int64", {2}}, {"m", "bool", {2}}}).size(), 1u);
}

TEST(InferenceWire, ReadsParametersAndRefusesOthers) {
  inference::ModelInferRequest request = Request("UINT8", {0});
  auto& parameters = *request.mutable_parameters();
  parameters["kinds"].set_string_param("theta_a,theta");
  parameters["members"].set_uint64_param(3);
  parameters["min_draws"].set_int64_param(2);
  parameters["include_failed"].set_bool_param(true);
  parameters["point"].set_string_param("eta=0.1");
  parameters["chains"].set_string_param("0,12");
  parameters["every"].set_int64_param(5);
  parameters["max_draws"].set_int64_param(64);
  parameters["anytime"].set_bool_param(true);
  parameters["quantiles"].set_string_param("0.05,0.5");
  const auto call = FromProto(request);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_THAT(call->kinds, ElementsAre(DrawKind::kThetaA, DrawKind::kTheta));
  EXPECT_EQ(call->members, 3);
  EXPECT_EQ(call->min_draws, 2);
  EXPECT_TRUE(call->include_failed);
  EXPECT_EQ(call->point, "eta=0.1");
  EXPECT_THAT(call->chains, ElementsAre(0, 12));
  EXPECT_EQ(call->every, 5);
  EXPECT_EQ(call->max_draws, 64);
  EXPECT_TRUE(call->anytime);
  EXPECT_THAT(call->quantiles, ElementsAre(0.05, 0.5));
  for (const char* bad : {"", "0,", "a", "-1", "1.5", "99999999999"}) {
    parameters["chains"].set_string_param(bad);
    ExpectRefused(request, "'chains'");
  }
  parameters.erase("chains");
  for (const char* bad : {"", "0", "1", "0.5,", "nan", "95", "half"}) {
    parameters["quantiles"].set_string_param(bad);
    ExpectRefused(request, "'quantiles'");
  }
  parameters.erase("quantiles");
  for (const auto& [asked, level] : {std::pair(0, 1), {1, 0}, {2, 1}, {3, 2}}) {  // 1 is the most urgent, 0 the usual
    parameters["priority"].set_int64_param(asked);
    EXPECT_EQ(FromProto(request)->priority, level) << asked;
  }
  parameters["priority"].set_int64_param(4);
  ExpectRefused(request, "'priority' must be 1 (high) to 3 (low)");
  parameters.erase("priority");
  parameters["timeout"].set_int64_param(1'500'000);
  EXPECT_EQ(FromProto(request)->timeout, absl::Milliseconds(1500));
  parameters.erase("timeout");
  parameters["anytime"].set_string_param("true");
  ExpectRefused(request, "'anytime' must be a bool");
  parameters.erase("anytime");
  parameters["members"].set_int64_param(-1);
  ExpectRefused(request, "'members'");
  parameters.erase("members");
  parameters["kinds"].set_string_param("phi");
  ExpectRefused(request, "'phi'");
  parameters.erase("kinds");
  parameters["wish"].set_bool_param(true);
  ExpectRefused(request, "'wish'");
}

TEST(InferenceWire, RendersRawTensorsInTheOrderAsked) {
  Prediction prediction;
  prediction.version = 4;
  prediction.num_rows = 1;
  prediction.targets = Classes{2};
  prediction.scores.of = ClassScores{.mean_probability = {0.25, 0.75}, .predictive_entropy = {0.5}};
  InferenceCall call;
  call.model = "job";
  call.outputs = {"predictive_entropy", "mean_probability", "predictive_entropy_error"};
  EXPECT_TRUE(call.WantsErrors());
  const auto response = ToProto(prediction, call);
  EXPECT_EQ(response.model_version(), "4");
  ASSERT_EQ(response.outputs_size(), 3);
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(1, 2));
  EXPECT_EQ(response.raw_output_contents(0), Raw<double>({0.5}));
  EXPECT_EQ(response.raw_output_contents(1), Raw<double>({0.25, 0.75}));
  double error;
  std::memcpy(&error, response.raw_output_contents(2).data(), sizeof error);
  EXPECT_TRUE(std::isnan(error)) << "one chain has no error";
}

TEST(InferenceWire, RendersTheBestClassesAsTriton) {
  Prediction prediction;
  prediction.num_rows = 2;
  prediction.targets = Classes{3};
  prediction.scores.of =
      ClassScores{.mean_probability = {0.2, 0.7, 0.1, 0.25, 0.25, 0.5}, .max_probability = {0.7, 0.5}};
  InferenceCall call;
  call.outputs = {"max_probability", "mean_probability"};
  call.best_classes = {{"mean_probability", 2}};
  const auto response = ToProto(prediction, call, {"a", "b", "c:d"});
  EXPECT_EQ(response.outputs(0).datatype(), "FP64");
  EXPECT_EQ(response.outputs(1).datatype(), "BYTES");
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 2));
  EXPECT_EQ(response.raw_output_contents(1), std::string("\x0c\0\0\0"
                                                         "0.700000:1:b"
                                                         "\x0c\0\0\0"
                                                         "0.200000:0:a"
                                                         "\x0e\0\0\0"
                                                         "0.500000:2:c:d"
                                                         "\x0c\0\0\0"
                                                         "0.250000:0:a",
                                                         66));
  call.best_classes = {{"mean_probability", 1000}};
  const auto unnamed = ToProto(prediction, call);
  EXPECT_THAT(unnamed.outputs(1).shape(), ElementsAre(2, 3));
  EXPECT_THAT(unnamed.raw_output_contents(1), HasSubstr("0.100000:2\n")) << "the length of the next, 10";
}

TEST(InferenceWire, ReadsClassificationAndNoOtherParameterOfAnOutput) {
  inference::ModelInferRequest request = Request("FP32", {0, 2});
  request.add_raw_input_contents("");
  auto* const output = request.add_outputs();
  output->set_name("mean_probability");
  (*output->mutable_parameters())["classification"].set_int64_param(3);
  const auto call = FromProto(request);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->best_classes.at("mean_probability"), 3);
  (*output->mutable_parameters())["classification"].set_int64_param(0);
  ExpectRefused(request, "'classification' of output 'mean_probability'");
  (*output->mutable_parameters())["classification"].set_string_param("3");
  ExpectRefused(request, "a number of classes");
  output->mutable_parameters()->clear();
  (*output->mutable_parameters())["wish"].set_int64_param(1);
  ExpectRefused(request, "'wish' of output");
}

TEST(InferenceWire, OnlyOutputsOfEachClassAreClassified) {
  for (const char* name : {"mean_probability", "log_probability", "mean_probability_error"}) {
    EXPECT_TRUE(CheckClassification(name, Classes{3}).ok()) << name;
  }
  for (const char* name : {"max_probability", "member_probabilities"}) {
    EXPECT_THAT(std::string(CheckClassification(name, Classes{3}).message()), HasSubstr(name));
  }
  for (const char* name : {"mean", "quantiles"}) EXPECT_FALSE(CheckClassification(name, Numbers()).ok()) << name;
}

// Two draws of chain 0's theta and one of chain 2's theta_a over two rows; digits: chain, draw, row, class.
Prediction WithMembers() {
  Prediction prediction;
  prediction.num_rows = 2;
  prediction.targets = Classes{2};
  Members first{.chain = {"job", 0}, .kind = DrawKind::kTheta, .weights = {1, 2.5}};
  first.outputs = ClassMembers{{0, 1, 10, 11, 100, 101, 110, 111}};
  Members second{.chain = {"job", 2}, .kind = DrawKind::kThetaA, .weights = {1}};
  second.outputs = ClassMembers{{2000, 2001, 2010, 2011}};
  prediction.members = {first, second};
  return prediction;
}

TEST(InferenceWire, RendersMembersRowsFirst) {
  InferenceCall call;
  call.outputs = {"member_probabilities"};
  EXPECT_TRUE(call.WantsMembers());
  const auto response = ToProto(WithMembers(), call);
  EXPECT_EQ(response.outputs(0).datatype(), "FP32");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3, 2));
  EXPECT_EQ(response.raw_output_contents(0), Raw<float>({0, 1, 100, 101, 2000, 2001, 10, 11, 110, 111, 2010, 2011}));
  EXPECT_EQ(response.parameters().at("members").string_param(), "0/theta:2,2/theta_a:1");
  EXPECT_EQ(response.parameters().at("member_weights").string_param(), "1,2.5,1");
}

TEST(InferenceWire, RendersNumbersWithQuantilesAndMembers) {
  Prediction prediction;
  prediction.num_rows = 2;
  prediction.scores.numbers().mean = {1, 2};
  prediction.quantiles = {0.5, 1.5, 1.6, 2.5};
  prediction.members = {
      {.chain = {"job", 0}, .kind = DrawKind::kTheta, .weights = {1, 1}, .outputs = NumberMembers{{1, 2, 3, 4}, {}}}};
  InferenceCall call;
  call.outputs = {"quantiles", "member_mean"};
  const auto response = ToProto(prediction, call);
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_EQ(response.raw_output_contents(0), Raw<double>(prediction.quantiles));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 2));
  EXPECT_EQ(response.raw_output_contents(1), Raw<float>({1, 3, 2, 4}));
}

TEST(InferenceWire, RendersGradientsWithTheAxesOfInputs) {
  Prediction prediction = WithMembers();  // 2 rows, 2 classes, 3 draws
  for (int i = 0; i < 2 * 2 * 3; ++i) prediction.mean_gradient.push_back(i);
  for (Members& members : prediction.members) {
    for (size_t i = 0; i < members.weights.size() * 2 * 2 * 3; ++i)
      members.gradients.push_back(static_cast<float>(100 * members.chain.index + static_cast<int>(i)));
  }
  InferenceCall call;
  call.outputs = {"mean_gradient", "member_gradients"};
  EXPECT_TRUE(call.WantsGradients());
  EXPECT_TRUE(call.WantsMembers());
  const auto response = ToProto(prediction, call, {}, {1, 3});
  EXPECT_EQ(response.outputs(0).datatype(), "FP64");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 2, 1, 3));
  EXPECT_EQ(response.raw_output_contents(0), Raw<double>(prediction.mean_gradient));
  EXPECT_EQ(response.outputs(1).datatype(), "FP32");
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 3, 2, 1, 3));
  const std::string first_row_of_the_second_draw = Raw<float>({12, 13, 14, 15, 16, 17});
  EXPECT_EQ(response.raw_output_contents(1).substr(6 * sizeof(float), 6 * sizeof(float)), first_row_of_the_second_draw);
  call.outputs = {"mean_gradient"};
  EXPECT_FALSE(call.WantsMembers());
  EXPECT_FALSE(CheckClassification("mean_gradient", Classes{2}).ok());
}

TEST(InferenceWire, RendersErrorsOfQuantilesAndNaNWhereTheyAreUnknown) {
  Prediction prediction;
  prediction.num_rows = 2;
  prediction.quantiles = {0.5, 1.5, 1.6, 2.5};
  prediction.quantile_errors = {0.1, 0.2, 0.3, 0.4};
  InferenceCall call;
  call.outputs = {"quantiles_error", "quantiles"};
  EXPECT_TRUE(call.WantsErrors());
  auto response = ToProto(prediction, call);
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_EQ(response.raw_output_contents(0), Raw<double>(prediction.quantile_errors));
  EXPECT_EQ(response.raw_output_contents(1), Raw<double>(prediction.quantiles));
  prediction.quantile_errors.clear();
  response = ToProto(prediction, call);
  EXPECT_EQ(response.raw_output_contents(0), Raw<double>(std::vector<double>(4, std::nan(""))));
}

TEST(InferenceWire, SendsErrorsOfAnytimeAnswersAndQuantilesUnasked) {
  InferenceCall call;
  call.anytime = true;
  call.quantiles = {0.5};
  EXPECT_TRUE(call.WantsErrors());
  EXPECT_FALSE(call.WantsMembers());
  EXPECT_THAT(UsualOutputs(Numbers(), true, true),
              ElementsAre("mean", "variance_aleatoric", "variance_epistemic", "mean_error", "variance_aleatoric_error",
                          "variance_epistemic_error", "quantiles", "quantiles_error"));
  EXPECT_THAT(UsualOutputs(Numbers(), false, true),
              ElementsAre("mean", "variance_aleatoric", "variance_epistemic", "quantiles"));
  EXPECT_THAT(UsualOutputs(Numbers(), false, false), ElementsAre("mean", "variance_aleatoric", "variance_epistemic"));
  for (const std::string name : {"quantiles", "quantiles_error"}) {
    EXPECT_THAT(std::string(CheckOutputs({name}, Numbers(), false).message()),
                HasSubstr("output '" + name + "' needs the parameter 'quantiles'"));
    EXPECT_THAT(std::string(CheckOutputs({name}, Classes{10}, false).message()), HasSubstr("unknown output '" + name))
        << "a classifier refuses that parameter, too";
  }
}

TEST(InferenceWire, SendsConformalSetsAndIntervalsOfAnEvaluation) {
  inference::ModelInferRequest request = Request("FP32", {1, 1});
  request.add_raw_input_contents(Raw(std::vector<float>{1}));
  (*request.mutable_parameters())["conformal"].set_string_param("eval-1");
  (*request.mutable_parameters())["level"].set_double_param(0.8);
  (*request.mutable_parameters())["weights"].set_string_param("eval-2");
  (*request.mutable_parameters())["pseudo_bma"].set_bool_param(true);
  const auto parsed = FromProto(request);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->conformal, "eval-1");
  EXPECT_EQ(parsed->level, 0.8);
  EXPECT_EQ(parsed->weights, "eval-2");
  EXPECT_TRUE(parsed->pseudo_bma);
  (*request.mutable_parameters())["level"].set_int64_param(1);
  EXPECT_THAT(std::string(FromProto(request).status().message()), HasSubstr("'level' must be a double above 0"));

  InferenceCall call;
  call.outputs = {"prediction_set"};
  Prediction prediction;
  prediction.num_rows = 2;
  prediction.targets = Classes{3};
  prediction.prediction_set = {1, 0, 1, 0, 1, 0};
  auto response = ToProto(prediction, call);
  EXPECT_EQ(response.outputs(0).datatype(), "BOOL");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3));
  EXPECT_EQ(response.raw_output_contents(0), std::string("\1\0\1\0\1\0", 6));
  EXPECT_FALSE(CheckClassification("prediction_set", Classes{3}).ok()) << "no probabilities";
  prediction.targets = Numbers();
  prediction.interval = {0, 1, 2, 3};
  call.outputs = {"interval"};
  response = ToProto(prediction, call);
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_EQ(response.raw_output_contents(0), Raw<double>(prediction.interval));
  EXPECT_THAT(UsualOutputs(Numbers(), false, false, true),
              ElementsAre("mean", "variance_aleatoric", "variance_epistemic", "interval"));
  EXPECT_THAT(std::string(CheckOutputs({"interval"}, Numbers(), false).message()),
              HasSubstr("needs the parameter 'conformal'"));
  EXPECT_TRUE(CheckOutputs({"prediction_set"}, Classes{3}, false, true).ok());
  EXPECT_FALSE(CheckOutputs({"prediction_set"}, Numbers(), false, true).ok());
}

TEST(InferenceWire, KnowsTheOutputsOfEachKindOfTarget) {
  EXPECT_TRUE(CheckOutputs({"member_probabilities"}, Classes{10}, true).ok());
  EXPECT_TRUE(CheckOutputs({"quantiles", "member_mean", "member_variance"}, Numbers(), true).ok());
  EXPECT_TRUE(CheckOutputs({"mean_gradient", "member_gradients"}, Numbers(), false).ok());
  EXPECT_TRUE(CheckOutputs({"quantiles_error"}, Numbers(), true).ok());
  EXPECT_FALSE(CheckOutputs({"quantiles"}, Classes{10}, true).ok());
  EXPECT_FALSE(CheckOutputs({"quantiles_error"}, Classes{10}, true).ok());
  EXPECT_FALSE(CheckOutputs({"member_weights"}, Classes{10}, true).ok());
  EXPECT_TRUE(CheckOutputs({"mean_probability", "mutual_information_error"}, Classes{10}, true).ok());
  EXPECT_TRUE(CheckOutputs({"variance_epistemic"}, Numbers(), true).ok());
  EXPECT_FALSE(CheckOutputs({"mean_probability"}, Numbers(), true).ok());
  EXPECT_THAT(std::string(CheckOutputs({"logits"}, Classes{10}, true).message()), HasSubstr("variation_ratio"));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckOutputs({"mean", "variance_epistemic", "mean"}, Numbers(), true)));
}

TEST(InferenceWire, KnowsWhatARowOfAnAnswerTakes) {
  EXPECT_EQ(RowBytes({"mean_probability", "mutual_information", "member_probabilities"}, Classes{10}, 0), 8 * (10 + 1));
  EXPECT_EQ(RowBytes({"mean", "mean_error", "quantiles"}, Numbers(), 32), 8 * (2 + 32));
  EXPECT_EQ(RowBytes({"quantiles", "quantiles_error"}, Numbers(), 32), 8 * (32 + 32));
}

TEST(InferenceWire, ReadsVersions) {
  EXPECT_EQ(*VersionFromProto(""), 0);
  EXPECT_EQ(*VersionFromProto("12"), 12);
  EXPECT_TRUE(absl::IsNotFound(VersionFromProto("0").status()));
  for (const char* bad : {"-1", "one", "1.0", "1 ", " 1", "+1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(VersionFromProto(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace chainfleet
