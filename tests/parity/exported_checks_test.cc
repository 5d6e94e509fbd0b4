// Nodes of a .pt2 file whose operators trust their arguments: the worker checks them, and changes no result.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/exported_program.h"
#include "tests/support/exported_files.h"
#include "tests/support/exported_tensors.h"
#include "worker/numerics/models/exported_steps.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 5;

// float32 sin(0.01 i) for i = 0, 1, ...
at::Tensor InputOf(const ExportedSignature& input) {
  std::vector<int64_t> shape = {kRows};
  shape.insert(shape.end(), input.shape.begin(), input.shape.end());
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return (at::arange(count, at::kDouble) * 0.01).sin().to(at::kFloat).view(shape);
}

at::Tensor TensorOf(const ExportedTensor& tensor, const std::string& bytes) {
  const at::Tensor made = EmptyFor(tensor);
  std::memcpy(made.mutable_data_ptr(), bytes.data(), bytes.size());
  return made;
}

// The values of a program of `file` for kRows rows of inputs.
std::vector<at::Tensor> ValuesOf(const ExportedProgram& program, const std::string& file) {
  std::vector<at::Tensor> values;
  const auto content = ReadExportedTensors(file, program);
  for (size_t i = 0; i < content->size(); ++i) values.push_back(TensorOf(program.tensors[i], (*content)[i]));
  for (const ExportedSignature& input : program.inputs) values.push_back(InputOf(input));
  return values;
}

// The error of the network's run with these values, "" without one.
std::string RunError(const ExportedProgram& program, const std::vector<at::Tensor>& values) {
  const auto steps = ExportedSteps::Compile(program, at::kCPU);
  if (!steps.ok()) return std::string(steps.status().message());
  try {
    steps->Run(values);
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "";
}

void SetArgument(ExportedNode* node, const std::string& name, const ExportedArgument& value) {
  std::erase_if(node->arguments, [&](const auto& argument) { return argument.first == name; });
  node->arguments.emplace_back(name, value);
}

void EraseArgument(ExportedNode* node, const std::string& name) {
  std::erase_if(node->arguments, [&](const auto& argument) { return argument.first == name; });
}

// run_decompositions() writes the operator that does not check its sizes.
TEST(ExportedChecks, ADecomposedBatchNormHasTheSameBitsAndChecksItsSizes) {
  const std::string file = ReadExportedData("conv.pt2");
  ExportedProgram program = *ReadExportedProgram(file);
  std::vector<at::Tensor> values = ValuesOf(program, file);
  const at::Tensor wanted = ExportedSteps::Compile(program, at::kCPU)->Run(values);
  ExportedNode* const node = &*std::ranges::find(program.nodes, "aten::batch_norm", &ExportedNode::op);
  node->op = "aten::_native_batch_norm_legit_no_training";
  EraseArgument(node, "training");
  EraseArgument(node, "cudnn_enabled");
  node->outputs.resize(3);
  const auto steps = ExportedSteps::Compile(program, at::kCPU);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_TRUE(steps->Run(values).equal(wanted));
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    const auto given = std::find_if(node->arguments.begin(), node->arguments.end(),
                                    [&](const auto& argument) { return argument.first == name; });
    ASSERT_NE(given, node->arguments.end()) << name;
    at::Tensor& value = values[static_cast<size_t>(std::get<ExportedValue>(given->second).id)];
    const at::Tensor whole = std::exchange(value, value.narrow(0, 0, 1));
    EXPECT_THAT(RunError(program, values), HasSubstr("elements")) << name;
    value = whole;
  }
  node->outputs[1] = node->outputs[0];
  EXPECT_THAT(RunError(program, values), HasSubstr("is used for its mean or variance"));
}

TEST(ExportedChecks, ADecomposedGroupNormHasTheSameBitsAndTakesItsSizesFromTheInput) {
  const std::string file = ReadExportedData("residual.pt2");
  ExportedProgram program = *ReadExportedProgram(file);
  const std::vector<at::Tensor> values = ValuesOf(program, file);
  const at::Tensor wanted = ExportedSteps::Compile(program, at::kCPU)->Run(values);
  ExportedNode* const node = &*std::ranges::find(program.nodes, "aten::group_norm", &ExportedNode::op);
  node->op = "aten::native_group_norm";
  EraseArgument(node, "cudnn_enabled");
  for (auto& [name, argument] : node->arguments) {
    if (name == "num_groups") name = "group";
  }
  SetArgument(node, "N", int64_t{1});
  SetArgument(node, "C", int64_t{4});
  SetArgument(node, "HxW", int64_t{1} << 62);
  node->outputs.resize(3);
  const auto steps = ExportedSteps::Compile(program, at::kCPU);
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_TRUE(steps->Run(values).equal(wanted));
}

// A program of one node, whose arguments are its inputs.
ExportedProgram ProgramOf(ExportedNode node, int32_t inputs) {
  ExportedProgram program;
  node.name = "node";
  node.outputs = {ExportedValue{inputs}};
  program.nodes = {std::move(node)};
  program.inputs.resize(static_cast<size_t>(inputs));
  program.num_values = inputs + 1;
  program.result = {inputs};
  return program;
}

TEST(ExportedChecks, ChecksWhatOperatorsTrust) {
  const at::Tensor v = at::arange(12, at::kFloat).view({3, 4}), image = v.view({1, 1, 3, 4});
  const auto weight_norm = [&](int64_t dim, int64_t size) {
    ExportedNode node;
    node.op = "aten::_weight_norm";
    node.arguments = {{"v", ExportedValue{0}}, {"g", ExportedValue{1}}, {"dim", dim}};
    return RunError(ProgramOf(node, 2), {v, at::arange(size, at::kFloat)});
  };
  EXPECT_EQ(weight_norm(1, 4), "");
  EXPECT_THAT(weight_norm(0, 1), HasSubstr("g has 1 values, v has the shape [3, 4]"));
  EXPECT_THAT(weight_norm(1, 3), HasSubstr("g has 3 values"));
  const auto sample = [&](int64_t interpolation, int64_t padding) {
    ExportedNode node;
    node.op = "aten::grid_sampler";
    node.arguments = {{"input", ExportedValue{0}},
                      {"grid", ExportedValue{1}},
                      {"interpolation_mode", interpolation},
                      {"padding_mode", padding},
                      {"align_corners", false}};
    return RunError(ProgramOf(node, 2), {image, at::arange(4, at::kFloat).view({1, 1, 2, 2})});
  };
  EXPECT_EQ(sample(2, 2), "");
  EXPECT_THAT(sample(3, 0), HasSubstr("mode 3 is unknown"));
  EXPECT_THAT(sample(0, -1), HasSubstr("mode -1 is unknown"));
  const auto shuffle = [&](int64_t groups) {
    ExportedNode node;
    node.op = "aten::native_channel_shuffle";
    node.arguments = {{"self", ExportedValue{0}}, {"groups", groups}};
    return RunError(ProgramOf(node, 1), {v.view({1, 4, 3})});
  };
  EXPECT_EQ(shuffle(2), "");
  EXPECT_THAT(shuffle(3), HasSubstr("must be divisible by groups"));
  EXPECT_THAT(shuffle(0), HasSubstr("must be positive"));
}

}  // namespace
}  // namespace chainfleet
