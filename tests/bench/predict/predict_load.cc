// chainfleet-predict-load: ModelInfer calls against a running server, a fixed number of them open at any time. One line
// of JSON for each concurrency. predict_bench.py starts the server.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/mutex.h"
#include "core/base/version.h"
#include "grpcpp/create_channel.h"
#include "inference/grpc_service.grpc.pb.h"

namespace chainfleet {
namespace {

constexpr int kConnections = 4;

struct Options {
  std::string address = "127.0.0.1:7400", job, inputs, token, datatype = "UINT8";
  std::vector<std::string> outputs = {"mean_probability"};
  std::vector<int> concurrency = {1, 2, 4, 8, 16, 32, 64};
  std::vector<int64_t> row_shape = {1, 28, 28};
  int64_t rows = 1;
  double seconds = 5;
  int64_t requests = 0;
  std::vector<int> watch;
};

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double ResidentMib(int pid) {
  std::ifstream statm(absl::StrFormat("/proc/%d/statm", pid));
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 0x1p20;
}

// Keeps `width` calls open until the time or the number of requests is used up. Each slot requests other rows.
class Round {
 public:
  Round(const Options& options, const std::string& rows,
        const std::vector<std::unique_ptr<inference::GRPCInferenceService::Stub>>& stubs, int width)
      : options_(options), slots_(width) {
    const int64_t row_bytes = (options.datatype == "FP32" ? 4 : 1) * Values();
    const int64_t in_file = static_cast<int64_t>(rows.size()) / row_bytes;
    for (int i = 0; i < width; ++i) {
      Slot& slot = slots_[i];
      slot.stub = stubs[i % stubs.size()].get();
      slot.request.set_model_name(options.job);
      auto* input = slot.request.add_inputs();
      input->set_name("x");
      input->set_datatype(options.datatype);
      input->add_shape(options.rows);
      for (const int64_t side : options.row_shape) input->add_shape(side);
      for (const std::string& output : options.outputs) slot.request.add_outputs()->set_name(output);
      std::string* raw = slot.request.add_raw_input_contents();
      for (int64_t r = 0; r < options.rows; ++r) {
        raw->append(rows, (i * options.rows + r) % in_file * row_bytes, row_bytes);
      }
    }
  }

  void Run() {
    began_ = Now();
    ends_ = options_.requests > 0 ? 1e300 : began_ + options_.seconds;
    for (Slot& slot : slots_) Ask(&slot);
    MutexLock lock(&mutex_);
    while (open_ > 0) closed_.Wait(&mutex_);
  }

  void Print(int width) {
    std::vector<double> latencies;
    for (Slot& slot : slots_) latencies.insert(latencies.end(), slot.latencies.begin(), slot.latencies.end());
    std::sort(latencies.begin(), latencies.end());
    const auto at = [&](double share) {
      return latencies.empty() ? 0.0 : 1000 * latencies[static_cast<size_t>(share * (latencies.size() - 1))];
    };
    const double rate = static_cast<double>(latencies.size()) / (Now() - began_);
    std::cout << absl::StrFormat(
                     "{\"concurrency\": %d, \"requests_per_s\": %.1f, \"rows_per_s\": %.1f, \"p50_ms\": %.3f, "
                     "\"p95_ms\": %.3f, \"p99_ms\": %.3f, \"requests\": %d, \"refused\": %d, \"failed\": %d, "
                     "\"error\": \"%s\"}",
                     width, rate, rate * static_cast<double>(options_.rows), at(0.5), at(0.95), at(0.99),
                     latencies.size(), refused_.load(), failed_.load(), error_)
              << std::endl;
  }

 private:
  struct Slot {
    inference::GRPCInferenceService::Stub* stub = nullptr;
    inference::ModelInferRequest request;
    std::unique_ptr<grpc::ClientContext> context;
    inference::ModelInferResponse response;
    double asked = 0;
    std::vector<double> latencies;  // seconds
  };

  int64_t Values() const {
    int64_t values = 1;
    for (const int64_t side : options_.row_shape) values *= side;
    return values;
  }

  bool Over() {
    const int64_t asked = asked_.fetch_add(1);
    const bool report = options_.requests > 0 && !options_.watch.empty() && asked % (options_.requests / 10) == 0;
    if (report) {
      std::string text;
      for (const int pid : options_.watch)
        text += absl::StrFormat("%s%.1f", text.empty() ? "" : ", ", ResidentMib(pid));
      std::cout << absl::StrFormat("{\"after_requests\": %d, \"resident_mib\": [%s]}", asked, text) << std::endl;
    }
    return options_.requests > 0 ? asked >= options_.requests : Now() >= ends_;
  }

  void Ask(Slot* slot) {
    {
      MutexLock lock(&mutex_);
      ++open_;
    }
    slot->context = std::make_unique<grpc::ClientContext>();
    if (!options_.token.empty()) slot->context->AddMetadata("authorization", "Bearer " + options_.token);
    slot->asked = Now();
    slot->stub->async()->ModelInfer(slot->context.get(), &slot->request, &slot->response,
                                    [this, slot](const grpc::Status& status) { OnAnswer(slot, status); });
  }

  void OnAnswer(Slot* slot, const grpc::Status& status) {
    if (status.ok()) {
      slot->latencies.push_back(Now() - slot->asked);
    } else if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
      refused_.fetch_add(1);
    } else if (failed_.fetch_add(1) == 0) {
      MutexLock lock(&mutex_);
      error_ = status.error_message();
    }
    // Stop calling a server that fails at once.
    if (!Over() && failed_.load() < 100) Ask(slot);
    MutexLock lock(&mutex_);
    if (--open_ == 0) closed_.SignalAll();
  }

  const Options& options_;
  std::vector<Slot> slots_;
  double began_ = 0, ends_ = 0;
  std::atomic<int64_t> asked_{0}, refused_{0}, failed_{0};
  Mutex mutex_;
  CondVar closed_;
  int open_ CHAINFLEET_GUARDED_BY(mutex_) = 0;
  std::string error_ CHAINFLEET_GUARDED_BY(mutex_);
};

void Run(const Options& options) {
  std::ifstream file(options.inputs, std::ios::binary);
  const std::string rows{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::unique_ptr<inference::GRPCInferenceService::Stub>> stubs;
  for (int i = 0; i < kConnections; ++i) {
    grpc::ChannelArguments own;  // otherwise the channels share one connection
    own.SetInt("chainfleet.connection", i);
    own.SetMaxReceiveMessageSize(-1);
    stubs.push_back(inference::GRPCInferenceService::NewStub(
        grpc::CreateCustomChannel(options.address, grpc::InsecureChannelCredentials(), own)));
  }
  for (const int width : options.concurrency) {
    Round round(options, rows, stubs, width);
    round.Run();
    round.Print(width);
  }
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) {
  chainfleet::Options options;
  CLI::App app("Sends ModelInfer calls to a running server; prints a line of JSON per concurrency");
  app.set_version_flag("--version", chainfleet::kVersion);
  app.add_option("--address", options.address, "HOST:PORT of the server");
  app.add_option("--job", options.job, "Job id")->required();
  app.add_option("--token", options.token, "Token of the tenant");
  app.add_option("--inputs", options.inputs, "File of rows: values of the datatype, little-endian")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--datatype", options.datatype, "Datatype of the inputs")->check(CLI::IsMember({"UINT8", "FP32"}));
  app.add_option("--row-shape", options.row_shape, "Shape of a row")->delimiter(',');
  app.add_option("--rows", options.rows, "Rows per request")->check(CLI::PositiveNumber);
  app.add_option("--outputs", options.outputs, "Requested outputs")->delimiter(',');
  app.add_option("--concurrency", options.concurrency, "Concurrent requests, one round per value")->delimiter(',');
  app.add_option("--seconds", options.seconds, "Length of a round in seconds");
  app.add_option("--requests", options.requests, "Number of requests, instead of --seconds");
  app.add_option("--watch", options.watch, "With --requests: processes whose memory is printed ten times")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  chainfleet::Run(options);
}
