// A thin face of prometheus-cpp: a registry of named metrics and the port that serves them.
//
// Names carry the prefix "chainfleet_" and their unit; counters end in "_total". Keep the returned reference: looking a
// series up costs a lock. References stay valid as long as the registry; series that come and go are made at each
// scrape (AtScrape).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/metrics/page_server.h"

namespace chainfleet {

using Labels = std::map<std::string, std::string>;

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Add(double amount = 1) = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(double value) = 0;
  // Values that were counted elsewhere: how many by bucket, the last one's above all bounds, and what they sum to.
  virtual void ObserveCounted(const std::vector<double>& counts, double sum) = 0;
};

// A gauge with all the series that it has at one scrape.
struct GaugeFamily {
  struct Sample {
    Labels labels;
    double value = 0;
  };
  std::string name, help;
  std::vector<Sample> samples;
};

// Thread-safe.
class MetricsRegistry {
 public:
  // `program` is "server" or "worker", in chainfleet_build_info; process metrics (CPU, memory, descriptors) are always
  // there.
  explicit MetricsRegistry(const std::string& program);
  ~MetricsRegistry();

  // The same name and labels again give the same series. One name has one type and one set of label names (a checked
  // invariant).
  Counter& AddCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& AddGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `bounds`: upper bounds of the buckets, rising, +Inf left out.
  Histogram& AddHistogram(const std::string& name, const std::string& help, const std::vector<double>& bounds,
                          const Labels& labels = {});

  // Runs before each scrape: sets gauges from the state of the program. May not add series of its own registry's
  // callbacks.
  void BeforeScrape(std::function<void()> refresh);

  // Adds what `collect` returns to each scrape: series that it leaves out disappear. No other metric may use
  // its names. It may also set gauges.
  void AtScrape(std::function<std::vector<GaugeFamily>()> collect);

  // Another page on the same port, by its path. Before Serve.
  void AddPage(const std::string& path, TextPage page);

  // Serves GET /metrics on `address` ("127.0.0.1:7401", port 0: a free one) and returns it with the port that was
  // bound. ALREADY_EXISTS / PORT_TAKEN; INVALID_ARGUMENT for a malformed address.
  absl::StatusOr<std::string> Serve(const std::string& address);
  // After this call no refresh or collect function runs, so the objects that they read may be destroyed.
  void StopServing();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chainfleet
