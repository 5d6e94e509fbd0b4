// Measures chain-steps per second of Entropy-MCMC on one device, for tests/gpu/run.sh. Prints one line of JSON for the
// rate and one for the counts of LibTorch's profiler in ten further steps.
//
//   chain_rate DEVICE MODEL WIDTH BATCH CHAINS float32|tf32 SECONDS
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/resource.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/clock.h"
#include "tests/support/synthetic_dataset.h"
#include "worker/numerics/arena/device.h"
#include "worker/numerics/batch/chain_batch.h"

namespace chainfleet {
namespace {

constexpr int kWarmUpSteps = 4, kProfiledSteps = 10;
constexpr int64_t kBatchesOfData = 32;  // a small data set, since the first step measures the chains over all of it

struct Settings {
  std::string device, model;
  double width;
  int64_t batch_size;
  int chains;
  Precision precision;
  double seconds;
};

std::shared_ptr<const JobPlan> PlanOf(const Settings& settings, const ResidentDataset& data) {
  auto plan = std::make_shared<JobPlan>();
  plan->job = "rate";
  plan->spec.name = plan->job;
  plan->spec.dataset = data.description().name;
  plan->spec.model.kind = BuiltinModel{settings.model, {}, settings.width};
  plan->spec.prior.kind = GaussianPrior{25};
  plan->spec.sampler.kind = EmcmcSpec{};
  plan->spec.schedule = {StepScale::kStepSize, ConstantSchedule{1e-8}};
  plan->spec.temperature = 1e-4;
  plan->spec.batch_size = settings.batch_size;
  plan->spec.num_steps = int64_t{1} << 40;
  plan->spec.chains = settings.chains;
  plan->spec.precision = settings.precision;
  plan->dataset = data.description();
  plan->normalisation = plan->dataset->normalisation;
  return plan;
}

void Step(ChainBatch* batch) {
  const auto stepped = batch->Step();
  CHAINFLEET_CHECK(stepped.ok()) << stepped.status().ToString();
}

// The device may still run steps that the host has issued.
void WaitFor(const Device& device) {
  if (!device.is_cuda()) return;
  c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA)
      .synchronizeDevice(static_cast<c10::DeviceIndex>(device.cuda_index));
}

double CpuSeconds() {
  rusage usage;
  CHAINFLEET_CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void PrintRate(ChainBatch* batch, const Settings& settings, const Device& device, double first_step_seconds) {
  const SystemClock clock;
  WaitFor(device);
  const absl::Duration begin = clock.Monotonic();
  const double cpu_begin = CpuSeconds();
  int64_t steps = 0;
  for (; clock.Monotonic() - begin < absl::Seconds(settings.seconds); ++steps) Step(batch);
  WaitFor(device);
  const double seconds = absl::ToDoubleSeconds(clock.Monotonic() - begin), cpu = CpuSeconds() - cpu_begin;
  absl::PrintF(
      "{\"what\": \"chainfleet\", \"model\": \"%s\", \"chains\": %d, \"precision\": \"%s\", \"batch\": %d, "
      "\"rate\": %.6g, \"ms_per_step\": %.6g, \"cpu_ms_per_step\": %.6g, \"first_step_s\": %.4g, \"steps\": %d, "
      "\"seconds\": %.4g}\n",
      settings.model, settings.chains, settings.precision == Precision::kTf32 ? "tf32" : "float32", settings.batch_size,
      steps * settings.chains / seconds, 1e3 * seconds / steps, 1e3 * cpu / steps, first_step_seconds, steps, seconds);
  std::fflush(stdout);
}

struct Profile {
  struct Kernel {
    int64_t calls = 0;
    double ms = 0;
  };
  std::map<std::string, Kernel> kernels;  // kernels of the device
  int64_t copies = 0, graph_launches = 0, waits = 0;
};

Profile ProfileSteps(ChainBatch* batch, const Device& device) {
  using torch::profiler::impl::ActivityType;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CPU, ActivityType::CUDA};
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  for (int step = 0; step < kProfiledSteps; ++step) Step(batch);
  WaitFor(device);
  const auto result = torch::autograd::profiler::disableProfiler();
  Profile profile;
  for (const torch::autograd::profiler::KinetoEvent& event : result->events()) {
    const std::string name = event.name();
    const bool is_on_device = event.deviceType() == c10::DeviceType::CUDA;
    if (is_on_device && (absl::StartsWith(name, "Memcpy") || absl::StartsWith(name, "Memset"))) {
      ++profile.copies;
    } else if (is_on_device) {
      Profile::Kernel& kernel = profile.kernels[name];
      ++kernel.calls;
      kernel.ms += 1e-6 * static_cast<double>(event.durationNs());
    }
    profile.graph_launches += static_cast<int64_t>(name == "cudaGraphLaunch");
    profile.waits += static_cast<int64_t>(absl::StartsWith(name, "cuda") && absl::StrContains(name, "Synchronize"));
  }
  return profile;
}

void PrintProfile(const Profile& profile) {
  using Entry = std::pair<std::string, Profile::Kernel>;
  std::vector<Entry> kernels(profile.kernels.begin(), profile.kernels.end());
  std::ranges::sort(kernels, std::greater(), [](const Entry& entry) { return entry.second.ms; });
  int64_t launches = 0;
  double ms = 0;
  for (const auto& [name, kernel] : kernels) {
    launches += kernel.calls;
    ms += kernel.ms;
  }
  constexpr size_t kShown = 12;
  kernels.resize(std::min(kernels.size(), kShown));
  const std::string longest = absl::StrJoin(kernels, ", ", [](std::string* out, const Entry& entry) {
    std::string name = entry.first.substr(0, 160);
    std::erase_if(name, [](char c) { return c == '"' || c == '\\'; });
    absl::StrAppendFormat(out, "[\"%s\", %.3g, %.4g]", name, static_cast<double>(entry.second.calls) / kProfiledSteps,
                          entry.second.ms / kProfiledSteps);
  });
  absl::PrintF(
      "{\"launches_per_step\": %.4g, \"kernel_ms_per_step\": %.4g, \"copies_per_step\": %.4g, "
      "\"waits_per_step\": %.4g, \"graph_launches_per_step\": %.4g, \"longest_kernels\": [%s]}\n",
      static_cast<double>(launches) / kProfiledSteps, ms / kProfiledSteps,
      static_cast<double>(profile.copies) / kProfiledSteps, static_cast<double>(profile.waits) / kProfiledSteps,
      static_cast<double>(profile.graph_launches) / kProfiledSteps, longest);
}

int Run(const Settings& settings) {
  // Call before any tensor exists: LibTorch looks for its CUDA back end once.
  if (const absl::Status status = InitializeDevice(settings.device, 1); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  const Device device = *ParseDevice(settings.device);
  const bool is_digits = settings.model == "mlp" || settings.model == "lenet5";
  const auto data = SyntheticImages(kBatchesOfData * settings.batch_size,
                                    is_digits ? std::vector<int64_t>{1, 28, 28} : std::vector<int64_t>{3, 32, 32});
  auto batch = ChainBatch::Create(PlanOf(settings, *data), data, settings.device);
  if (!batch.ok()) {
    std::cerr << batch.status() << "\n";
    return 1;
  }
  for (int chain = 0; chain < settings.chains; ++chain) {
    CHAINFLEET_CHECK((*batch)->AddChain(chain, std::nullopt).ok());
  }
  const SystemClock clock;
  const absl::Duration begin = clock.Monotonic();
  Step(batch->get());
  const double first_step_seconds = absl::ToDoubleSeconds(clock.Monotonic() - begin);
  for (int step = 1; step < kWarmUpSteps; ++step) Step(batch->get());
  PrintRate(batch->get(), settings, device, first_step_seconds);
  // A profiler that cannot see the device has no count, which differs from 0.
  const Profile profile = ProfileSteps(batch->get(), device);
  if (!profile.kernels.empty()) PrintProfile(profile);
  return 0;
}

}  // namespace
}  // namespace chainfleet

int main(int argc, char** argv) {
  if (argc != 8) {
    std::cerr << "usage: chain_rate DEVICE MODEL WIDTH BATCH CHAINS float32|tf32 SECONDS\n";
    return 2;
  }
  using chainfleet::Precision;
  return chainfleet::Run({argv[1], argv[2], std::atof(argv[3]), std::atoll(argv[4]), std::atoi(argv[5]),
                          argv[6] == std::string("tf32") ? Precision::kTf32 : Precision::kFloat32, std::atof(argv[7])});
}
