#include "core/metrics/metrics.h"

#include <dirent.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/version.h"

namespace chainfleet {
namespace {

// The objects of prometheus-cpp behind the interfaces of this folder.
template <typename Face, typename Series>
struct Holder : Face {
  explicit Holder(Series& s) : series(s) {}
  Series& series;
};

struct CounterHolder final : Holder<Counter, prometheus::Counter> {
  using Holder::Holder;
  void Add(double amount) override { series.Increment(amount); }
};
struct GaugeHolder final : Holder<Gauge, prometheus::Gauge> {
  using Holder::Holder;
  void Set(double value) override { series.Set(value); }
};
struct HistogramHolder final : Holder<Histogram, prometheus::Histogram> {
  using Holder::Holder;
  void Observe(double value) override { series.Observe(value); }
  void ObserveCounted(const std::vector<double>& counts, double sum) override { series.ObserveMultiple(counts, sum); }
};

double OpenDescriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  double count = -3;  // ".", ".." and the folder itself
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

double ResidentBytes() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  long total = 0, resident = 0;
  const int read = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  return read == 2 ? static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) : 0;
}

double CpuSeconds() {
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

prometheus::MetricFamily ToPrometheus(GaugeFamily family) {
  prometheus::MetricFamily proto;
  proto.name = std::move(family.name);
  proto.help = std::move(family.help);
  proto.type = prometheus::MetricType::Gauge;
  for (GaugeFamily::Sample& sample : family.samples) {
    prometheus::ClientMetric& metric = proto.metric.emplace_back();
    for (const auto& [name, value] : sample.labels) metric.label.push_back({name, value});
    metric.gauge.value = sample.value;
  }
  return proto;
}

}  // namespace

struct MetricsRegistry::Impl {
  // Collects after the refresh functions, so that gauges show the present values.
  std::vector<prometheus::MetricFamily> Collect() {
    std::vector<std::function<void()>> refreshes;
    std::vector<std::function<std::vector<GaugeFamily>()>> collects;
    {
      MutexLock lock(&mutex);
      refreshes = refresh;
      collects = collect;
    }
    for (const auto& run : refreshes) run();
    std::vector<prometheus::MetricFamily> fresh;
    for (const auto& run : collects) {
      for (GaugeFamily& family : run()) {
        if (!family.samples.empty()) fresh.push_back(ToPrometheus(std::move(family)));
      }
    }
    std::vector<prometheus::MetricFamily> families = registry->Collect();
    families.insert(families.end(), std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()));
    return families;
  }

  template <typename HolderType, typename Series>
  HolderType& Keep(Series& series) {
    MutexLock lock(&mutex);
    auto& holder = holders[&series];
    if (!holder) holder = std::make_shared<HolderType>(series);
    return *static_cast<HolderType*>(holder.get());
  }

  Mutex mutex;
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::map<const void*, std::shared_ptr<void>> holders CHAINFLEET_GUARDED_BY(mutex);
  std::vector<std::function<void()>> refresh CHAINFLEET_GUARDED_BY(mutex);
  std::vector<std::function<std::vector<GaugeFamily>()>> collect CHAINFLEET_GUARDED_BY(mutex);
  double cpu_seconds_counted = 0;
  std::map<std::string, TextPage> pages CHAINFLEET_GUARDED_BY(mutex);
  std::unique_ptr<PageServer> server;  // destroyed first, because it collects
};

MetricsRegistry::MetricsRegistry(const std::string& program) : impl_(std::make_unique<Impl>()) {
  AddGauge("chainfleet_build_info", "Always 1; the labels name the program and its version.",
           {{"program", program}, {"version", kVersion}})
      .Set(1);
  Counter& cpu = AddCounter("chainfleet_process_cpu_seconds_total", "User and system CPU seconds of the process.");
  Gauge& memory = AddGauge("chainfleet_process_resident_memory_bytes", "Resident memory of the process in bytes.");
  Gauge& descriptors = AddGauge("chainfleet_process_open_fds", "Open file descriptors of the process.");
  BeforeScrape([this, &cpu, &memory, &descriptors] {
    const double seconds = CpuSeconds();
    cpu.Add(seconds - std::exchange(impl_->cpu_seconds_counted, seconds));
    memory.Set(ResidentBytes());
    descriptors.Set(OpenDescriptors());
  });
}

MetricsRegistry::~MetricsRegistry() = default;

Counter& MetricsRegistry::AddCounter(const std::string& name, const std::string& help, const Labels& labels) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(*impl_->registry);
  return impl_->Keep<CounterHolder>(family.Add(labels));
}

Gauge& MetricsRegistry::AddGauge(const std::string& name, const std::string& help, const Labels& labels) {
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(*impl_->registry);
  return impl_->Keep<GaugeHolder>(family.Add(labels));
}

Histogram& MetricsRegistry::AddHistogram(const std::string& name, const std::string& help,
                                         const std::vector<double>& bounds, const Labels& labels) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(*impl_->registry);
  return impl_->Keep<HistogramHolder>(family.Add(labels, bounds));
}

void MetricsRegistry::BeforeScrape(std::function<void()> refresh) {
  MutexLock lock(&impl_->mutex);
  impl_->refresh.push_back(std::move(refresh));
}

void MetricsRegistry::AtScrape(std::function<std::vector<GaugeFamily>()> collect) {
  MutexLock lock(&impl_->mutex);
  impl_->collect.push_back(std::move(collect));
}

void MetricsRegistry::AddPage(const std::string& path, TextPage page) {
  MutexLock lock(&impl_->mutex);
  impl_->pages[path] = std::move(page);
}

absl::StatusOr<std::string> MetricsRegistry::Serve(const std::string& address, const Reread<std::string>& token,
                                                   const TlsFiles& tls, OnRefusedPage on_refused) {
  std::map<std::string, TextPage> pages;
  {
    MutexLock lock(&impl_->mutex);
    pages = impl_->pages;
  }
  pages["/metrics"] = {"text/plain; version=0.0.4; charset=utf-8",
                       [this] { return prometheus::TextSerializer().Serialize(impl_->Collect()); }};
  // Collects as a scrape does, so that a probe finds a process that hangs.
  const auto healthz = [this] {
    impl_->Collect();
    return "ok\n";
  };
  pages["/healthz"] = {"text/plain", healthz, /*is_public=*/true};
  CHAINFLEET_ASSIGN_OR_RETURN(impl_->server,
                              PageServer::Start({address, tls}, std::move(pages), token, std::move(on_refused)));
  return impl_->server->address();
}

void MetricsRegistry::StopServing() { impl_->server.reset(); }

}  // namespace chainfleet
