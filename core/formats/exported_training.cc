#include "core/formats/exported_training.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/formats/exported_json.h"

namespace chainfleet {
namespace {

ExportedArgument* ArgumentOf(ExportedNode* node, std::string_view name) {
  const auto found = std::ranges::find(node->arguments, name, [](const auto& given) { return given.first; });
  return found == node->arguments.end() ? nullptr : &found->second;
}

// Zero if there is no such argument, or it is no number.
double NumberOf(const ExportedArgument* argument) {
  if (argument == nullptr) return 0;
  if (const auto* number = std::get_if<double>(argument)) return *number;
  const auto* whole = std::get_if<int64_t>(argument);
  return whole == nullptr ? 0 : static_cast<double>(*whole);
}

bool IsSet(const ExportedArgument* argument) { return argument != nullptr && *argument == ExportedArgument(true); }

bool IsDropout(std::string_view op) {
  return op == "aten::dropout" || op == "aten::dropout_" || op == "aten::feature_dropout" ||
         op == "aten::feature_dropout_";
}

// The layers of an RNN have nothing between them that trains, unless units are dropped there.
bool IsRecurrent(std::string_view op) {
  return op == "aten::gru" || op == "aten::lstm" || op == "aten::rnn_tanh" || op == "aten::rnn_relu";
}

class TrainingFinder {
 public:
  explicit TrainingFinder(ExportedProgram* program) : program_(*program) {}

  absl::Status Find(ExportedNode* node) {
    ExportedArgument* const train = ArgumentOf(node, "train");
    if (IsDropout(node->op) && IsSet(train)) {
      *train = false;
      return SetRate(NumberOf(ArgumentOf(node, "p")), node);
    }
    if (IsRecurrent(node->op) && IsSet(train) && NumberOf(ArgumentOf(node, "dropout")) == 0) *train = false;
    if (node->op == "aten::scaled_dot_product_attention") {
      if (ExportedArgument* const rate = ArgumentOf(node, "dropout_p"); rate != nullptr) {
        CHAINFLEET_RETURN_IF_ERROR(SetRate(NumberOf(rate), node));
        *rate = 0.0;
      }
    }
    ExportedArgument* const training = ArgumentOf(node, "training");
    if (node->op != "aten::batch_norm" || !IsSet(training)) return absl::OkStatus();
    *training = false;
    node->statistic = static_cast<int32_t>(program_.statistics.size());
    CHAINFLEET_RETURN_IF_ERROR(AddStatistic(ArgumentOf(node, "running_mean")));
    return AddStatistic(ArgumentOf(node, "running_var"));
  }

  // nn.BatchNorm's num_batches_tracked += 1, whose value only a batch norm without momentum needs.
  bool CountsBatches(const ExportedNode& node) const {
    if (node.op != "aten::add_" || node.arguments.empty() || (!node.outputs.empty() && node.outputs[0])) return false;
    const ExportedTensor* const counter = BufferOf(&node.arguments.front().second);
    return counter != nullptr && counter->type == ExportedType::kInt64 &&
           counter->name.ends_with("num_batches_tracked");
  }

 private:
  static absl::Status SetRate(double rate, ExportedNode* node) {
    if (!(rate >= 0 && rate < 1)) {
      return absl::InvalidArgumentError(absl::StrCat("drops units at the rate ", rate, ", which must be below 1"));
    }
    node->drop_rate = rate;
    return absl::OkStatus();
  }

  const ExportedTensor* BufferOf(const ExportedArgument* argument) const {
    const auto* value = argument == nullptr ? nullptr : std::get_if<ExportedValue>(argument);
    if (value == nullptr || value->id >= program_.num_tensors()) return nullptr;
    const ExportedTensor& tensor = program_.tensors[static_cast<size_t>(value->id)];
    return tensor.is_parameter ? nullptr : &tensor;
  }

  absl::Status AddStatistic(const ExportedArgument* argument) {
    const ExportedTensor* const tensor = BufferOf(argument);
    if (tensor == nullptr || tensor->type != ExportedType::kFloat || tensor->shape.size() != 1 ||
        tensor->shape[0] < 1) {
      return absl::InvalidArgumentError(
          "has no running statistics, whose shapes those of a draw have: keep track_running_stats=True");
    }
    const auto index = static_cast<int32_t>(tensor - program_.tensors.data());
    if (std::ranges::count(program_.statistics, index) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("uses ", ShownName(tensor->name), " a second time: each use needs a BatchNorm of its own"));
    }
    program_.statistics.push_back(index);
    return absl::OkStatus();
  }

  ExportedProgram& program_;
};

// Operators that train after FindTraining would draw random numbers or change buffers. The others end the process:
// whole numbers divided towards zero if the result does not fit, grouped attention without heads.
absl::Status CheckMode(const ExportedNode& node) {
  bool trains = node.op.find("dropout") != std::string::npos;  // some train by default
  for (const auto& given : node.arguments) {
    const auto is = [&given](const char* name, const auto& wanted) {
      return given.first == name && given.second == ExportedArgument(wanted);
    };
    if (is("train", false)) trains = false;
    const double* const rate = std::get_if<double>(&given.second);
    trains |=
        is("train", true) || is("training", true) || (given.first == "dropout_p" && rate != nullptr && *rate != 0);
    if (is("rounding_mode", std::string("trunc"))) {
      return absl::InvalidArgumentError("rounds towards zero: use torch.trunc(a / b)");
    }
    if (is("enable_gqa", true))
      return absl::InvalidArgumentError("groups heads: repeat keys and values instead of enable_gqa");
  }
  if (!trains) return absl::OkStatus();
  return absl::InvalidArgumentError("is in training mode: call model.eval() before torch.export.export(model, ...)");
}

}  // namespace

absl::Status FindTraining(ExportedProgram* program) {
  TrainingFinder finder(program);
  std::erase_if(program->nodes, [&](const ExportedNode& node) { return finder.CountsBatches(node); });
  for (ExportedNode& node : program->nodes) {
    absl::Status found = finder.Find(&node);
    if (found.ok()) found = CheckMode(node);
    if (!found.ok()) return Annotate(found, absl::StrCat("node ", ShownName(node.name), " (", node.op, ")"));
  }
  return absl::OkStatus();
}

}  // namespace chainfleet
