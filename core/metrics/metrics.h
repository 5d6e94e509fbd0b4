// Wraps prometheus-cpp: a registry of named metrics and the port that serves them.
//
// Names carry the prefix "chainfleet_" and their unit; counters end in "_total". Keep the returned reference, because
// looking a series up takes a lock. References stay valid as long as the registry. AtScrape makes series that come and
// go anew at each scrape.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/reread.h"
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
  // Adds values that were counted elsewhere: counts by bucket, the last one above all bounds, and the sum of the
  // values.
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
  // `program` is "server" or "worker", in chainfleet_build_info. Process metrics (CPU, memory, descriptors) always
  // exist.
  explicit MetricsRegistry(const std::string& program);
  ~MetricsRegistry();

  // The same name and labels return the same series. REQUIRES: one name has one type and one set of label names
  // (checked).
  Counter& AddCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& AddGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  // `bounds`: upper bounds of the buckets, rising, without +Inf.
  Histogram& AddHistogram(const std::string& name, const std::string& help, const std::vector<double>& bounds,
                          const Labels& labels = {});

  // Runs before each scrape and sets gauges from the state of the program. REQUIRES: `refresh` adds no series or
  // callback.
  void BeforeScrape(std::function<void()> refresh);

  // Adds the result of `collect` to each scrape; a series that is missing in the result disappears. No other metric may
  // use its names. `collect` may also set gauges.
  void AtScrape(std::function<std::vector<GaugeFamily>()> collect);

  // Adds another page on the same port. REQUIRES: call before Serve.
  void AddPage(const std::string& path, TextPage page);

  // Serves GET /metrics on `address` ("127.0.0.1:7401", port 0: any free port) and returns the address with the bound
  // port. If `token` is not empty, every page except /healthz needs it. With a certificate in `tls`, all pages are
  // served by TLS only. `on_refused` may be null. ALREADY_EXISTS / PORT_TAKEN; INVALID_ARGUMENT for a malformed
  // address.
  absl::StatusOr<std::string> Serve(const std::string& address, const Reread<std::string>& token = {},
                                    const TlsFiles& tls = {}, OnRefusedPage on_refused = nullptr);
  // After this call no refresh or collect function runs, so the objects that they read may be destroyed.
  void StopServing();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chainfleet
