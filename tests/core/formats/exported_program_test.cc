#include "core/formats/exported_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/limits.h"
#include "core/formats/exported_operators.h"
#include "core/formats/zip.h"
#include "tests/support/exported_tensors.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Members = std::vector<std::pair<std::string, std::string>>;

constexpr char kFolder[] = CHAINFLEET_EXPORTED_FOLDER;
constexpr char kModel[] = "/models/model.json", kWeights[] = "/data/weights/model_weights_config.json";

std::string FileOf(const std::string& name) {
  std::ifstream file(absl::StrCat(kFolder, "/", name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string NetworkOf(const std::string& name) { return FileOf(name + ".pt2"); }

Members MembersOf(const std::string& bytes) {
  Members members;
  const auto archive = ZipReader::Open(bytes, ".pt2");
  for (size_t i = 0; i < archive->names().size(); ++i) {
    members.emplace_back(archive->names()[i], archive->Read(i, limits::kMaxBlobBytes).value());
  }
  return members;
}

// Returns the network `name` with `edit` of one of its JSON members.
std::string Edited(const std::string& name, const char* member, const std::function<void(Json&)>& edit) {
  Members members = MembersOf(NetworkOf(name));
  for (auto& [path, content] : members) {
    if (!path.ends_with(member)) continue;
    Json json = Json::parse(content);
    edit(json);
    content = json.dump();
  }
  return *WriteZip(members);
}

// As Edited, of the graph.
std::string WithGraph(const std::string& name, const std::function<void(Json& graph)>& edit) {
  return Edited(name, kModel, [&](Json& model) { edit(model["graph_module"]["graph"]); });
}

std::string WithNode(const std::string& name, size_t node, const std::function<void(Json& node)>& edit) {
  return WithGraph(name, [&](Json& graph) { edit(graph["nodes"][node]); });
}

std::string WithTarget(const std::string& target) {
  return WithNode("mlp", 1, [&](Json& node) { node["target"] = target; });
}

std::string WithArgument(const Json& argument) {
  return WithNode("mlp", 2, [&](Json& node) { node["inputs"][1]["arg"] = argument; });
}

// The network mlp without the member, or with another content.
std::string WithMember(const char* member, const char* content = nullptr) {
  Members members = MembersOf(NetworkOf("mlp"));
  const auto is_it = [&](const auto& entry) { return entry.first.ends_with(member); };
  if (content == nullptr) std::erase_if(members, is_it);
  if (content != nullptr) std::ranges::find_if(members, is_it)->second = content;
  return *WriteZip(members);
}

// The network without weights, in an archive with compression.
std::string Compressed(const std::string& name) {
  Members members = MembersOf(NetworkOf(name));
  const std::string path = absl::StrCat(::testing::TempDir(), "/compressed.pt2");
  zip_t* const archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  for (auto& [member, content] : members) {
    if (member.find("/weight_") != std::string::npos) content.assign(content.size(), '\0');
    zip_file_add(archive, member.c_str(), zip_source_buffer(archive, content.data(), content.size(), 0), 0);
  }
  EXPECT_EQ(zip_close(archive), 0);
  std::ifstream file(path, std::ios::binary);
  std::filesystem::remove(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

ExportedProgram Program(const std::string& bytes) {
  absl::StatusOr<ExportedProgram> program = ReadExportedProgram(bytes);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : ExportedProgram();
}

std::vector<std::string> NamesOf(const ExportedProgram& program) {
  std::vector<std::string> names;
  for (const ExportedTensor& tensor : program.tensors) names.push_back(tensor.name);
  return names;
}

void ExpectRefusal(const std::string& bytes, const std::vector<std::string>& words) {
  const absl::Status status = ReadExportedProgram(bytes).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  for (const std::string& word : words) EXPECT_THAT(std::string(status.message()), HasSubstr(word));
}

// Every value is computed before it is used.
void ExpectInOrder(const ExportedProgram& program) {
  std::vector<bool> known(static_cast<size_t>(program.num_values));
  std::fill_n(known.begin(), program.tensors.size() + program.inputs.size(), true);
  for (const ExportedNode& node : program.nodes) {
    EXPECT_TRUE(IsExportedOperator(node.op)) << node.op;
    for (const auto& [name, argument] : node.arguments) {
      const auto* const value = std::get_if<ExportedValue>(&argument);
      EXPECT_TRUE(value == nullptr || known[value->id]) << node.name;
    }
    for (const auto& value : node.outputs) {
      if (value) known[value->id] = true;
    }
  }
  EXPECT_TRUE(known[program.result.id]);
}

TEST(ExportedProgramTest, ReadsEveryNetwork) {
  const Json expected = Json::parse(FileOf("expected.json"));
  EXPECT_GE(expected.size(), 12u);
  for (const auto& [name, results] : expected.items()) {
    SCOPED_TRACE(name);
    const std::string bytes = NetworkOf(name);
    EXPECT_TRUE(IsExportedProgram(bytes));
    const ExportedProgram program = Program(bytes);
    EXPECT_EQ(program.torch_version, results["torch"]);
    EXPECT_THAT(program.output.shape, ElementsAre(results["outputs"][0].size()));
    EXPECT_EQ(program.output.type, ExportedType::kFloat);
    std::vector<std::string> parameters;
    for (const ExportedTensor& tensor : program.tensors) {
      if (tensor.is_parameter) parameters.push_back(tensor.name);
    }
    std::ranges::sort(parameters);
    std::vector<std::string> wanted;
    for (const auto& [parameter, gradient] : results["squared_gradients"].items()) wanted.push_back(parameter);
    EXPECT_EQ(parameters, wanted);
    const auto tensors = ReadExportedTensors(bytes, program);
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    for (size_t i = 0; i < tensors->size(); ++i) {
      const ExportedTensor& tensor = program.tensors[i];
      EXPECT_EQ((*tensors)[i].size(),
                std::accumulate(tensor.shape.begin(), tensor.shape.end(), SizeOf(tensor.type), std::multiplies<>()));
    }
    ExpectInOrder(program);
  }
}

TEST(ExportedProgramTest, ReadsTensorsInputsAndNodes) {
  const ExportedProgram program = Program(NetworkOf("mlp"));
  EXPECT_THAT(NamesOf(program), ElementsAre("0.weight", "0.bias", "3.weight", "3.bias", "5.weight", "5.bias"));
  EXPECT_THAT(program.tensors[0].shape, ElementsAre(16, 6));
  EXPECT_EQ(program.tensors[0].member, "mlp/data/weights/weight_0");
  ASSERT_EQ(program.inputs.size(), 1u);
  EXPECT_EQ(program.inputs[0].name, "input");
  EXPECT_EQ(program.inputs[0].type, ExportedType::kFloat);
  EXPECT_THAT(program.inputs[0].shape, ElementsAre(6));
  ASSERT_EQ(program.nodes.size(), 6u);
  const ExportedNode& linear = program.nodes[0];
  EXPECT_EQ(linear.name, "linear");
  EXPECT_EQ(linear.op, "aten::linear");
  EXPECT_EQ(linear.overload, "");
  const ExportedValue input = {6}, weight = {0}, bias = {1};
  EXPECT_THAT(linear.arguments,
              ElementsAre(std::pair("input", ExportedArgument(input)), std::pair("weight", ExportedArgument(weight)),
                          std::pair("bias", ExportedArgument(bias))));
  EXPECT_THAT(linear.outputs, ElementsAre(ExportedValue{7}));
  EXPECT_EQ(program.nodes[2].op, "aten::dropout");
  EXPECT_EQ(std::get<double>(program.nodes[2].arguments[1].second), 0.5);
  EXPECT_EQ(std::get<bool>(program.nodes[2].arguments[2].second), false);
  EXPECT_EQ(program.result.id, 12);
  EXPECT_EQ(program.num_values, 13);
  EXPECT_EQ(program.activation_bytes_per_row, 4 * (5 * 16 + 3));
  std::vector<int64_t> from_first_use;
  for (const ExportedTensor& tensor : program.tensors) from_first_use.push_back(tensor.activation_bytes_per_row);
  EXPECT_THAT(from_first_use,
              ElementsAre(4 * (5 * 16 + 3), 4 * (5 * 16 + 3), 4 * (2 * 16 + 3), 4 * (2 * 16 + 3), 4 * 3, 4 * 3));
}

TEST(ExportedProgramTest, TheFuzzedFileTrains) {
  const ExportedProgram program = Program(FileOf("../../fuzz/exported_corpus/training").substr(1));
  EXPECT_EQ(program.statistics.size(), 2u);
  EXPECT_TRUE(program.has_dropout());
  EXPECT_EQ(program.nodes.size(), 3u) << "without the count of batches";
}

TEST(ExportedProgramTest, NotesWhatTrains) {
  const ExportedProgram norm = Program(NetworkOf("train_norm"));
  std::vector<std::string> statistics, ops;
  for (const int32_t i : norm.statistics) statistics.push_back(norm.tensors[i].name);
  EXPECT_THAT(statistics, ElementsAre("1.running_mean", "1.running_var", "6.running_mean", "6.running_var"));
  std::vector<double> rates;
  for (const ExportedNode& node : norm.nodes) {
    ops.push_back(node.op);
    rates.push_back(node.drop_rate);
  }
  EXPECT_EQ(std::ranges::count(ops, "aten::add_"), 0) << "nothing counts batches";
  EXPECT_EQ(*std::ranges::max_element(rates), 0.25);
  const auto second = std::ranges::find(norm.nodes.rbegin(), norm.nodes.rend(), "aten::batch_norm", &ExportedNode::op);
  EXPECT_EQ(second->statistic, 2);
  EXPECT_TRUE(norm.has_dropout());
  const ExportedProgram attention = Program(NetworkOf("train_transformer"));
  EXPECT_EQ(std::ranges::count(attention.nodes, 0.1, &ExportedNode::drop_rate), 4);
  EXPECT_FALSE(Program(NetworkOf("conv")).has_dropout());
  EXPECT_TRUE(Program(NetworkOf("conv")).statistics.empty()) << "a file of evaluation keeps its own";
}

// Returns train_norm after `edit` of the arguments of its last batch norm.
std::string WithNorm(const std::function<void(Json& arguments)>& edit) {
  return WithGraph("train_norm", [&](Json& graph) {
    for (Json& node : graph["nodes"]) {
      if (node["name"] == "batch_norm_1") edit(node["inputs"]);
    }
  });
}

TEST(ExportedProgramTest, RefusesTrainingThatADrawCannotHold) {
  ExpectRefusal(WithNorm([](Json& given) {
                  given[3]["arg"] = {{"as_none", true}};
                }),
                {"node batch_norm_1 (aten::batch_norm): has no running statistics", "track_running_stats=True"});
  ExpectRefusal(WithNorm([](Json& given) { given[3]["arg"]["as_tensor"]["name"] = "b_1_running_mean"; }),
                {"batch_norm_1", "uses 1.running_mean a second time"});
  ExpectRefusal(WithNorm([](Json& given) { given[4]["arg"]["as_tensor"]["name"] = "p_6_weight"; }),
                {"has no running statistics"});
  ExpectRefusal(WithNode("train_dropout", 2, [](Json& node) { node["inputs"][1]["arg"]["as_float"] = 1.0; }),
                {"node dropout (aten::dropout): drops units at the rate 1"});
}

// They would draw random numbers or change buffers in a worker.
TEST(ExportedProgramTest, RefusesOtherOperatorsThatTrain) {
  const auto dropout = [](const std::function<void(Json & node)>& edit) { return WithNode("train_dropout", 2, edit); };
  for (const char* op : {"alpha_dropout", "alpha_dropout_", "feature_alpha_dropout", "native_dropout"}) {
    ExpectRefusal(dropout([&](Json& node) { node["target"] = absl::StrCat("torch.ops.aten.", op, ".default"); }),
                  {absl::StrCat("(aten::", op, ")"), "is in training mode: call model.eval()"});
  }
  ExpectRefusal(dropout([](Json& node) {
                  node["inputs"][2]["arg"] = {{"as_none", true}};
                }),
                {"node dropout (aten::dropout)", "is in training mode"});
}

// LibTorch would end the process.
TEST(ExportedProgramTest, RefusesArgumentsThatEndTheProcess) {
  const auto with = [](const char* name, const Json& value) {
    return WithNode("mlp", 0, [&](Json& node) {
      node["inputs"].push_back({{"name", name}, {"arg", value}, {"kind", 2}});
    });
  };
  ExpectRefusal(with("rounding_mode", {{"as_string", "trunc"}}), {"node linear (aten::linear)", "rounds towards zero"});
  ExpectRefusal(with("enable_gqa", {{"as_bool", true}}), {"node linear (aten::linear)", "groups heads"});
}

TEST(ExportedProgramTest, NamesNodesAsTheirFirstOutput) {
  EXPECT_EQ(Program(NetworkOf("mlp-2.9.1")).nodes[1].name, "relu");
  EXPECT_EQ(Program(NetworkOf("causal-2.9.1")).nodes[5].name, "getitem");
}

TEST(ExportedProgramTest, ReadsSizesListsAndConstants) {
  const ExportedProgram causal = Program(NetworkOf("causal"));
  EXPECT_THAT(NamesOf(causal),
              ElementsAre("embed.weight", "qkv.weight", "qkv.bias", "out.weight", "out.bias", "mask", "position"));
  EXPECT_EQ(causal.tensors[5].type, ExportedType::kBool);
  EXPECT_FALSE(causal.tensors[5].is_parameter);
  EXPECT_EQ(causal.tensors[6].member, "causal/data/constants/tensor_0");
  EXPECT_EQ(causal.inputs[0].type, ExportedType::kInt64);
  const auto node = [&](const std::string& name) {
    return *std::ranges::find(causal.nodes, name, &ExportedNode::name);
  };
  const ExportedValue rows = *node("sym_size_int_1").outputs[0];
  const std::vector<ExportedInt> shape = {rows, 6, 4, 4};
  EXPECT_EQ(node("view").arguments[1].second, ExportedArgument(shape));
  EXPECT_TRUE(node("chunk").returns_list);
  EXPECT_EQ(node("chunk").outputs.size(), 3u);
  EXPECT_EQ(std::get<double>(node("masked_fill").arguments[2].second), -HUGE_VAL);
  EXPECT_EQ(node("masked_fill").overload, "Scalar");
}

TEST(ExportedProgramTest, TiedParametersAreOne) {
  const ExportedProgram tied = Program(NetworkOf("tied"));
  EXPECT_THAT(NamesOf(tied), ElementsAre("0.weight", "2.weight", "2.bias"));
  EXPECT_EQ(tied.nodes.back().arguments[1].second, ExportedArgument(ExportedValue{0}));
}

TEST(ExportedProgramTest, LeavesOutWhatNothingUses) {
  const ExportedProgram gru = Program(NetworkOf("gru"));
  const auto node = std::ranges::find(gru.nodes, "aten::gru", &ExportedNode::op);
  ASSERT_EQ(node->outputs.size(), 2u);
  EXPECT_TRUE(node->outputs[0]);
  EXPECT_FALSE(node->outputs[1]);
}

TEST(ExportedProgramTest, ReadsEveryKindOfArgument) {
  const auto read = [](const Json& argument) { return Program(WithArgument(argument)).nodes[2].arguments[1].second; };
  using Values = std::vector<std::optional<ExportedValue>>;
  EXPECT_EQ(read({{"as_none", true}}), ExportedArgument());
  EXPECT_EQ(read({{"as_tensor", {{"name", "relu"}}}}), ExportedArgument(ExportedValue{8}));
  EXPECT_EQ(read({{"as_tensors", {{{"name", "relu"}}}}}), ExportedArgument(Values{ExportedValue{8}}));
  EXPECT_EQ(read({{"as_optional_tensor", {{"as_none", true}}}}), ExportedArgument());
  EXPECT_EQ(read({{"as_optional_tensors", {{{"as_none", true}}, {{"as_tensor", {{"name", "relu"}}}}}}}),
            ExportedArgument(Values{std::nullopt, ExportedValue{8}}));
  EXPECT_EQ(read({{"as_int", -3}}), ExportedArgument(int64_t{-3}));
  EXPECT_EQ(read({{"as_ints", {1, 2}}}), ExportedArgument(std::vector<ExportedInt>{1, 2}));
  EXPECT_EQ(read({{"as_sym_int", {{"as_int", 3}}}}), ExportedArgument(int64_t{3}));
  EXPECT_EQ(read({{"as_float", "Infinity"}}), ExportedArgument(HUGE_VAL));
  EXPECT_EQ(read({{"as_floats", {1, 0.5}}}), ExportedArgument(std::vector<double>{1, 0.5}));
  EXPECT_EQ(read({{"as_bools", {true}}}), ExportedArgument(std::vector<bool>{true}));
  EXPECT_EQ(read({{"as_string", "tanh"}}), ExportedArgument("tanh"));
  EXPECT_EQ(read({{"as_scalar_type", 7}}), ExportedArgument(ExportedType::kFloat));
  EXPECT_EQ(read({{"as_memory_format", 1}}), ExportedArgument(ExportedMemoryFormat::kContiguous));
  EXPECT_EQ(read({{"as_device", {{"type", "cuda"}, {"index", 0}}}}), ExportedArgument(OwnDevice()));
  EXPECT_EQ(read({{"as_layout", 7}}), ExportedArgument());
}

TEST(ExportedProgramTest, RefusesArgumentsOfOtherKinds) {
  for (const Json& argument : {Json{{"as_graph", Json::object()}}, Json{{"as_custom_obj", Json::object()}},
                               Json{{"as_complex", Json::object()}}, Json{{"as_operator", "aten.add"}},
                               Json{{"as_sym_float", Json::object()}}}) {
    ExpectRefusal(WithArgument(argument),
                  {"node dropout (torch.ops.aten.dropout.default)", "argument p", argument.begin().key()});
  }
  const std::string node = "node dropout (torch.ops.aten.dropout.default): ";
  ExpectRefusal(WithArgument({{"as_scalar_type", 10}}), {node, "type 10"});
  ExpectRefusal(WithArgument({{"as_memory_format", 0}}), {node, "memory format 0"});
  ExpectRefusal(WithArgument({{"as_layout", 1}}), {node, "sparse"});
  ExpectRefusal(WithArgument({{"as_int", 0.5}}), {node, "64-bit integer"});
  ExpectRefusal(WithArgument({{"as_int", uint64_t{1} << 63}}), {node, "64-bit integer"});
  ExpectRefusal(WithArgument({{"as_float", "nan"}}), {node, "a number"});
  ExpectRefusal(WithArgument({{"as_bool", 1}}), {node, "boolean"});
  ExpectRefusal(WithArgument(Json::object()), {node, "one key"});
  ExpectRefusal(WithArgument({{"as_tensor", {{"name", "linear_2"}}}}),
                {node, "uses linear_2, which no earlier node computes"});
  ExpectRefusal(WithArgument({{"as_sym_int", {{"as_name", "relu"}}}}),
                {node, "uses relu as a size, but it is a tensor"});
}

TEST(ExportedProgramTest, RefusesOperators) {
  const std::pair<const char*, const char*> cases[] = {
      {"torch.ops.mylib.relu.default", "not an operator of PyTorch"},
      {"torch.ops.prims.add.default", "not an operator of PyTorch"},
      {"torch.ops.higher_order.cond", "higher-order"},
      {"torch.ops.aten.rand_like.default", "random numbers"},
      {"torch.ops.aten.bernoulli.p", "random numbers"},
      {"torch.ops.aten.empty.memory_format", "none of the operators"},
      {"torch.ops.aten.from_file.default", "none of the operators"},
      {"torch.ops.aten.add.out", "writes its result into an argument"},
      {"torch.ops.aten.max.dim_max", "writes its result into an argument"},
      {"torch.ops.aten.relu", "none of the operators"},
      {"torch.ops.aten.relu.default.default", "none of the operators"},
      {"torch.ops._operator.add.default", "not an operator of PyTorch"},
      {"_operator.pow", "a function of Python on sizes"},
      {"torch.sym_float", "a function of Python on sizes"},
      {"", "a function of Python on sizes"},
  };
  for (const auto& [target, reason] : cases) {
    ExpectRefusal(WithTarget(target), {absl::StrCat("node relu (", target, "): "), reason});
  }
}

TEST(ExportedProgramTest, DropsAssertions) {
  const Json condition = {{"target", "_operator.ge"},
                          {"name", "ge"},
                          {"inputs", Json::array()},
                          {"outputs", {{{"as_sym_bool", {{"as_name", "ge"}}}}}}};
  const Json assertion = {{"target", "torch.ops.aten._assert_scalar.default"},
                          {"name", ""},
                          {"inputs", Json::array()},
                          {"outputs", Json::array()}};
  const ExportedProgram program = Program(WithGraph("mlp", [&](Json& graph) {
    graph["nodes"].insert(graph["nodes"].begin(), {condition, assertion});
  }));
  EXPECT_EQ(program.nodes.size(), 6u);
  EXPECT_EQ(program.num_values, 13);
  ExpectRefusal(WithGraph("mlp",
                          [&](Json& graph) {
                            graph["nodes"].insert(graph["nodes"].begin(), condition);
                            graph["nodes"][3]["inputs"][1]["arg"] = {{"as_sym_int", {{"as_name", "ge"}}}};
                          }),
                {"node dropout", "uses ge as a size, but it is a condition on sizes"});
}

TEST(ExportedProgramTest, RefusesGraphs) {
  ExpectRefusal(WithNode("mlp", 1, [](Json& node) { node["outputs"][0]["as_tensor"]["name"] = "linear"; }),
                {"node relu (torch.ops.aten.relu.default)", "two values named linear"});
  ExpectRefusal(WithNode("mlp", 1, [](Json& node) { node.erase("inputs"); }), {"node relu", "inputs"});
  ExpectRefusal(WithNode("mlp", 1,
                         [](Json& node) {
                           node["outputs"][0] = {{"as_sym_int", {{"as_name", "n"}}}};
                         }),
                {"node relu"});
  ExpectRefusal(WithNode("causal", 0,
                         [](Json& node) {
                           node["outputs"][0] = {{"as_tensor", {{"name", "n"}}}};
                         }),
                {"node sym_size_int_1"});
  const auto with_sizes = [](const char* value, const Json& sizes) {
    return WithGraph("mlp", [&](Json& graph) { graph["tensor_values"][value]["sizes"] = sizes; });
  };
  ExpectRefusal(with_sizes("input", {{{"as_int", 3}}, {{"as_int", 6}}}),
                {"input input: takes 3 rows only", "dynamic_shapes={\"input\": {0: torch.export.Dim(\"batch\")}}"});
  ExpectRefusal(with_sizes("input", Json::array()), {"input input: has no axes"});
  const Json batch = {{"as_expr", {{"expr_str", "s0"}}}}, other = {{"as_expr", {{"expr_str", "s0*2"}}}};
  ExpectRefusal(with_sizes("input", {batch, batch}), {"input input: has a dynamic axis besides"});
  ExpectRefusal(with_sizes("input", {batch, {{"as_int", 0}}}), {"input input: has an axis of size 0"});
  ExpectRefusal(with_sizes("input", {batch, {{"as_int", -1}}}), {"input input: has an axis of negative size"});
  const Json large = {{"as_int", int64_t{1} << 32}};
  ExpectRefusal(with_sizes("input", {batch, large, large}), {"input input: has more numbers than any memory"});
  ExpectRefusal(with_sizes("linear_2", {other, {{"as_int", 3}}}), {"output linear_2: has another number of rows"});
  ExpectRefusal(with_sizes("linear_2", {{{"as_int", 1}}, batch}), {"output linear_2: has 1 rows for any batch"});
  ExpectRefusal(with_sizes("input", Json::array_t(9, batch)), {"input input: has 9 axes"});
}

TEST(ExportedProgramTest, RefusesSignatures) {
  const auto with_signature = [](const std::function<void(Json&)>& edit) {
    return Edited("mlp", kModel, [&](Json& model) { edit(model["graph_module"]["signature"]); });
  };
  ExpectRefusal(
      with_signature([](Json& signature) { signature["output_specs"].push_back(signature["output_specs"][0]); }),
      {"2 outputs"});
  ExpectRefusal(with_signature([](Json& signature) {
                  signature["output_specs"][0] = {{"buffer_mutation", Json::object()}};
                }),
                {"buffer_mutation", "eval mode"});
  ExpectRefusal(with_signature([](Json& signature) {
                  signature["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"] = "y";
                }),
                {"the output: uses y"});
  ExpectRefusal(with_signature([](Json& signature) { signature["input_specs"].erase(6); }), {"has no inputs"});
  ExpectRefusal(with_signature([](Json& signature) {
                  signature["input_specs"][0] = {{"custom_obj", Json::object()}};
                }),
                {"custom_obj"});
  ExpectRefusal(
      with_signature([](Json& signature) { signature["input_specs"][0]["parameter"]["parameter_name"] = "w"; }),
      {"parameter w", "'w' not found"});
  ExpectRefusal(with_signature([](Json& signature) {
                  signature["input_specs"][6]["user_input"]["arg"] = {{"as_int", 3}};
                }),
                {"as_int"});
  ExpectRefusal(Edited("mlp", kModel, [](Json& model) { model["schema_version"]["major"] = 9; }),
                {"PyTorch 2.11.0", "version 9 of the schema"});
  ExpectRefusal(Edited("mlp", kModel, [](Json& model) { model["range_constraints"].begin().value()["max_val"] = 64; }),
                {"Dim(\"batch\")"});
  ExpectRefusal(Edited("two_inputs", kModel,
                       [](Json& model) {
                         model["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0]["as_expr"]["expr_str"] = "s9";
                       }),
                {"input x: has another number of rows than the first input"});
  const auto with_inputs = [](int count, const std::string& name) {
    return Edited("two_inputs", kModel, [&](Json& model) {
      Json& graph = model["graph_module"];
      for (int i = 2; i < count; ++i) {
        Json spec = graph["signature"]["input_specs"].back();
        spec["user_input"]["arg"]["as_tensor"]["name"] = name + std::to_string(i);
        graph["graph"]["tensor_values"][name + std::to_string(i)] = graph["graph"]["tensor_values"]["x"];
        graph["signature"]["input_specs"].push_back(spec);
      }
    });
  };
  EXPECT_EQ(ReadExportedProgram(with_inputs(64, "y"))->inputs.size(), 64u);
  ExpectRefusal(with_inputs(65, "y"), {"has more than 64 inputs"});
  ExpectRefusal(with_inputs(3, std::string(1024, 'y')), {"the name is too long"});
}

TEST(ExportedProgramTest, RefusesTensors) {
  const auto with_bias = [](const std::function<void(Json&)>& edit) {
    return Edited("mlp", kWeights, [&](Json& weights) { edit(weights["config"]["0.bias"]); });
  };
  const auto with_size = [&](const Json& size) {
    return with_bias([&](Json& bias) { bias["tensor_meta"]["sizes"][0] = size; });
  };
  ExpectRefusal(with_bias([](Json& bias) { bias["use_pickle"] = true; }), {"parameter 0.bias: is pickled"});
  ExpectRefusal(with_size({{"as_int", 17}}), {"parameter 0.bias: needs 68 bytes, but member weight_1 has 64"});
  ExpectRefusal(with_size({{"as_int", 15}}), {"parameter 0.bias: is a part"});
  ExpectRefusal(with_size({{"as_int", int64_t{1} << 62}}), {"parameter 0.bias: has more numbers"});
  ExpectRefusal(with_size({{"as_expr", Json::object()}}), {"parameter 0.bias: has a size that is not fixed"});
  ExpectRefusal(with_bias([](Json& bias) { bias["tensor_meta"]["strides"][0]["as_int"] = 2; }),
                {"parameter 0.bias: is a part or a view"});
  ExpectRefusal(with_bias([](Json& bias) { bias["tensor_meta"]["storage_offset"]["as_int"] = 1; }),
                {"parameter 0.bias: is a part or a view"});
  ExpectRefusal(with_bias([](Json& bias) { bias["tensor_meta"]["layout"] = 1; }), {"parameter 0.bias"});
  ExpectRefusal(with_bias([](Json& bias) { bias["tensor_meta"]["dtype"] = 10; }), {"parameter 0.bias: type 10"});
  ExpectRefusal(with_bias([](Json& bias) { bias["path_name"] = "../model.json"; }), {"parameter 0.bias", "no member"});
  ExpectRefusal(with_bias([](Json& bias) { bias["tensor_meta"] = nullptr; }), {"parameter 0.bias"});
  ExpectRefusal(Edited("mlp", kWeights,
                       [](Json& weights) {
                         Json& bias = weights["config"]["0.bias"];
                         bias["path_name"] = "weight_3";
                         bias["tensor_meta"]["dtype"] = 4;
                       }),
                {"parameter 3.bias", "shares the memory of 0.bias"});
}

TEST(ExportedProgramTest, RefusesArchives) {
  const std::string bytes = NetworkOf("mlp");
  ExpectRefusal("no zip", {"not a .pt2 archive"});
  ExpectRefusal(bytes.substr(0, bytes.size() / 2), {"not a .pt2 archive"});
  std::string damaged = bytes;
  damaged[damaged.find("\"torch_version\"") + 3] ^= 1;
  ExpectRefusal(damaged, {"models/model.json", "damaged"});
  for (const char* member : {"models/model.json", "byteorder", "data/weights/model_weights_config.json",
                             "data/constants/model_constants_config.json"}) {
    ExpectRefusal(WithMember(member), {member, "no member"});
  }
  ExpectRefusal(WithMember("data/weights/weight_1"), {"parameter 0.bias", "no member", "weight_1"});
  ExpectRefusal(WithMember("byteorder", "big"), {"byteorder is big"});
  ExpectRefusal(WithMember(kModel, "{"), {"models/model.json: is no JSON object"});
  ExpectRefusal(WithMember(kModel, "{\"graph_module\": 3}"), {"schema_version"});
  ExpectRefusal(WithMember(kModel, std::string(100, '[').c_str()), {"models/model.json: is nested more than 64 deep"});
  ExpectRefusal(Compressed("gru"), {"parameter ", "unpacks to more than the file"});
  std::string many(4 << 20, ',');
  ExpectRefusal(WithMember(kModel, many.c_str()), {"models/model.json: has more than 3355443 keys and values"});
  many.resize(33 << 20, ' ');
  ExpectRefusal(WithMember(kModel, many.c_str()), {"models/model.json: has 34603008 bytes, at most 33554432 are read"});
  EXPECT_FALSE(IsExportedProgram(std::string("no zip")));
  EXPECT_FALSE(IsExportedProgram(WithMember("archive_format", "pt1")));
}

TEST(ExportedProgramTest, AsksForTheMemoryOfItsDescription) {
  const std::string bytes = NetworkOf("mlp");
  int64_t description = 0, admitted = 0;
  for (const auto& [name, content] : MembersOf(bytes)) description += name.ends_with(".json") ? std::ssize(content) : 0;
  const auto count = [&](int64_t more) {
    admitted += more;
    return absl::OkStatus();
  };
  EXPECT_TRUE(ReadExportedProgram(bytes, count).ok());
  EXPECT_GT(admitted, 3 * description) << "the text, and more for what is parsed from it";
  const auto refuse_from = [&](int64_t most) {
    int64_t left = most;
    const auto take = [&left](int64_t more) {
      return (left -= more) < 0 ? absl::ResourceExhaustedError("no room") : absl::OkStatus();
    };
    return ReadExportedProgram(bytes, take).status();
  };
  EXPECT_TRUE(refuse_from(admitted).ok());
  for (const int64_t most : {int64_t{0}, description, admitted - 1}) {
    EXPECT_TRUE(absl::IsResourceExhausted(refuse_from(most))) << most;
  }
}

TEST(ExportedProgramTest, RefusesAnArchiveOfTooManyMembers) {
  Members members = MembersOf(NetworkOf("mlp"));
  for (int i = 0; i < 65536; ++i) members.emplace_back(absl::StrCat("mlp/", i), "");
  ExpectRefusal(*WriteZip(members), {"members, at most 65536 are read"});
}

TEST(ExportedProgramTest, ReadsNoDamagedTensor) {
  std::string bytes = NetworkOf("mlp");
  const ExportedProgram program = Program(bytes);
  const std::string weights = (*ReadExportedTensors(bytes, program))[2];
  bytes[bytes.find(weights)] ^= 1;
  const absl::Status status = ReadExportedTensors(bytes, Program(bytes)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("weight_2 is damaged"));
}

}  // namespace
}  // namespace chainfleet
