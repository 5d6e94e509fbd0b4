// chainfleet-member-loop: the Bayesian model average as a first program in LibTorch, a loop over the members in the
// same process, without network and server. Prints one line of JSON for each batch size. predict_bench.py compares with
// it.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/version.h"

namespace {

struct Options {
  std::string model = "lenet5", draws, inputs, save;
  int64_t members = 16;
  std::vector<int64_t> batches = {1, 64};
  double mean = 0, stddev = 1, seconds = 3;
  int streams = 1;  // concurrent batches, which share the cores
};

const std::vector<std::vector<int64_t>>& ShapesOf(const std::string& model) {
  static const std::vector<std::vector<int64_t>> kLenet5 = {{6, 1, 5, 5}, {6},  {16, 6, 5, 5}, {16}, {120, 400}, {120},
                                                            {84, 120},    {84}, {10, 84},      {10}};
  static const std::vector<std::vector<int64_t>> kMlp = {{200, 784}, {200}, {200, 200}, {200}, {10, 200}, {10}};
  return model == "mlp" ? kMlp : kLenet5;
}

std::vector<float> ReadFloats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

using Member = std::vector<at::Tensor>;

std::vector<Member> ReadMembers(const Options& options) {
  const std::vector<float> draws = ReadFloats(options.draws);
  std::vector<Member> members(options.members);
  const float* next = draws.data();
  for (Member& member : members) {
    for (const auto& shape : ShapesOf(options.model)) {
      member.push_back(at::from_blob(const_cast<float*>(next), shape, at::kFloat).clone());
      next += member.back().numel();
    }
  }
  return members;
}

at::Tensor Logits(const std::string& model, const Member& w, const at::Tensor& x) {
  if (model == "mlp") {
    const at::Tensor h = at::relu(at::linear(x.flatten(1), w[0], w[1]));
    return at::linear(at::relu(at::linear(h, w[2], w[3])), w[4], w[5]);
  }
  const at::Tensor first = at::max_pool2d(at::relu(at::conv2d(x, w[0], w[1], 1, 2)), 2);
  const at::Tensor second = at::max_pool2d(at::relu(at::conv2d(first, w[2], w[3])), 2);
  const at::Tensor h = at::relu(at::linear(second.flatten(1), w[4], w[5]));
  return at::linear(at::relu(at::linear(h, w[6], w[7])), w[8], w[9]);
}

at::Tensor Average(const Options& options, const std::vector<Member>& members, const at::Tensor& x) {
  const at::Tensor standardised = (x - options.mean) / options.stddev;
  at::Tensor sum;
  for (const Member& member : members) {
    const at::Tensor p = at::softmax(Logits(options.model, member, standardised), 1);
    sum = sum.defined() ? sum.add_(p) : p;
  }
  return sum / static_cast<double>(members.size());
}

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void Measure(const Options& options, const std::vector<Member>& members, const at::Tensor& inputs, int64_t batch) {
  std::atomic<int64_t> batches{0};
  const double began = Now(), ends = began + options.seconds;
  std::vector<std::thread> streams;
  for (int s = 0; s < options.streams; ++s) {
    streams.emplace_back([&, s] {
      const c10::InferenceMode inference;
      at::set_num_threads(std::max(1, 2 / options.streams));
      for (int64_t first = s * batch; Now() < ends; first += batch) {
        Average(options, members, inputs.narrow(0, first % (inputs.size(0) - batch + 1), batch));
        ++batches;
      }
    });
  }
  for (std::thread& stream : streams) stream.join();
  const double rate = static_cast<double>(batches) / (Now() - began);
  std::cout << absl::StrFormat("{\"batch\": %d, \"streams\": %d, \"batches_per_s\": %.2f, \"rows_per_s\": %.1f}", batch,
                               options.streams, rate, rate * static_cast<double>(batch))
            << std::endl;
}

void Run(const Options& options) {
  const c10::InferenceMode inference;
  at::set_num_threads(2);
  const std::vector<Member> members = ReadMembers(options);
  const std::vector<float> rows = ReadFloats(options.inputs);
  const at::Tensor inputs =
      at::from_blob(const_cast<float*>(rows.data()), {static_cast<int64_t>(rows.size()) / 784, 1, 28, 28}, at::kFloat);
  if (!options.save.empty()) {
    const at::Tensor answer = Average(options, members, inputs.narrow(0, 0, 64)).contiguous();
    std::ofstream(options.save, std::ios::binary)
        .write(reinterpret_cast<const char*>(answer.const_data_ptr<float>()), answer.numel() * sizeof(float));
  }
  for (const int64_t batch : options.batches) Measure(options, members, inputs, batch);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A loop over the members of a Bayesian model average in LibTorch; a line of JSON for each batch size");
  app.set_version_flag("--version", chainfleet::kVersion);
  app.add_option("--model", options.model)->check(CLI::IsMember({"lenet5", "mlp"}));
  app.add_option("--draws", options.draws, "float32 [members, parameters]")->required()->check(CLI::ExistingFile);
  app.add_option("--inputs", options.inputs, "float32 [rows, 784]")->required()->check(CLI::ExistingFile);
  app.add_option("--members", options.members)->check(CLI::PositiveNumber);
  app.add_option("--batches", options.batches)->delimiter(',');
  app.add_option("--mean", options.mean, "Mean of the data set, on the scale of the inputs");
  app.add_option("--stddev", options.stddev);
  app.add_option("--seconds", options.seconds, "Seconds per batch size");
  app.add_option("--streams", options.streams, "Concurrent batches")->check(CLI::Range(1, 2));
  app.add_option("--save", options.save, "Output file for the averages of the first 64 rows, float32");
  CLI11_PARSE(app, argc, argv);
  Run(options);
}
