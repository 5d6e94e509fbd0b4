#include "server/tenant_flags.h"

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/ids.h"
#include "core/base/per_tenant.h"
#include "core/base/status.h"

namespace chainfleet {
namespace {

template <typename T>
struct TenantFlag {
  const char* name;
  const char* description;
  T least, most;  // in units
  T unit;         // the value that the flag's 1 stands for
};

bool ReadNumber(const std::string& text, int64_t* number) { return absl::SimpleAtoi(text, number); }
bool ReadNumber(const std::string& text, double* number) { return absl::SimpleAtod(text, number); }

// Returns `values` with those of `texts` in place of its own.
template <typename T>
absl::StatusOr<PerTenant<T>> ReadValues(const TenantFlag<T>& flag, const std::vector<std::string>& texts,
                                        PerTenant<T> values) {
  std::set<std::string> given;
  for (const std::string& text : texts) {
    const std::string what = absl::StrCat(flag.name, " ", text);
    const size_t end = text.find('=');
    const bool has_tenant = end != std::string::npos;
    const std::string tenant = has_tenant ? text.substr(0, end) : "";
    if (has_tenant) CHAINFLEET_RETURN_IF_ERROR(CheckName("tenant", tenant, what));
    T number{};
    const bool is_number = ReadNumber(has_tenant ? text.substr(end + 1) : text, &number);
    if (!is_number || !(number >= flag.least && number <= flag.most)) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": give N or TENANT=N, where N is ",
                                                     std::is_integral_v<T> ? "an integer" : "a number", " from ",
                                                     flag.least, " to ", flag.most));
    }
    if (!given.insert(tenant).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": give ", has_tenant ? "one value for a tenant" : "one value for all other tenants", ", not two"));
    }
    (has_tenant ? values.own[tenant] : values.others) = number * flag.unit;
  }
  return values;
}

template <typename T>
void AddTenantFlag(CLI::App* app, const TenantFlag<T>& flag, PerTenant<T>* values) {
  const T others = values->others / flag.unit;
  app->add_option_function<std::vector<std::string>>(
         flag.name,
         [flag, values, defaults = *values](const std::vector<std::string>& texts) {
           absl::StatusOr<PerTenant<T>> read = ReadValues(flag, texts, defaults);
           if (!read.ok()) throw CLI::ValidationError(std::string(read.status().message()));
           *values = *std::move(read);
         },
         absl::StrCat(flag.description, "; default: ", others > flag.most ? "none" : absl::StrCat(others),
                      "; repeatable: TENANT=N is for that tenant, N for all others"))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text("[TENANT=]N");
}

}  // namespace

void AddTenantFlags(CLI::App* app, ServerOptions* options) {
  const auto bound = [app](const char* name, const char* description, PerTenant<int64_t>* values, int64_t unit = 1) {
    AddTenantFlag<int64_t>(app, {name, description, 1, 1 << 30, unit}, values);
  };
  TenantLimits* holdings = &options->tenant_limits;
  bound("--tenant-jobs", "Limit on the jobs of a tenant; deleted jobs do not count", &holdings->jobs);
  bound("--tenant-chains", "Limit on the chains of a tenant that have not ended", &holdings->chains);
  bound("--tenant-contents", "Limit on the data sets and models of a tenant together", &holdings->contents);
  bound("--tenant-stored-gib", "Limit on a tenant's draws (estimated), data sets and models, in GiB",
        &holdings->stored_bytes, int64_t{1} << 30);
  bound("--tenant-rows-per-second", "Limit on the rows that a tenant predicts in a second",
        &options->batches.tenant_rows_per_second);
  bound("--tenant-calls", "Limit on a tenant's calls in flight, streams included", &options->access.tenant_calls);
  AddTenantFlag<double>(app,
                        {"--tenant-weight", "A tenant's share of the fleet among waiting tenants", 1 / kMaxTenantWeight,
                         kMaxTenantWeight, 1},
                        &options->shares.weights);
}

}  // namespace chainfleet
