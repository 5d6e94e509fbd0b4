#include "server/tenant_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/settings_file.h"

namespace chainfleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TenantFlagsTest : public ::testing::Test {
 protected:
  ~TenantFlagsTest() override { std::filesystem::remove(path_); }
  // Returns the error, or "".
  std::string Read(const std::string& arguments) {
    CLI::App app;
    AddTenantFlags(&app, &options_);
    app.set_config("--config", path_);
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return WithLineOfSettings(path_, error.what());
    }
    return "";
  }
  const PerTenant<int64_t>& chains() const { return options_.tenant_limits.chains; }

  ServerOptions options_;
  const std::string path_ = absl::StrCat(::testing::TempDir(), "tenant_flags_test-", ::getpid(), ".toml");
};

TEST_F(TenantFlagsTest, GiveATenantAValueOfItsOwnAndAllOthersThePlainOne) {
  ASSERT_EQ(Read("--tenant-chains team-a=512 --tenant-chains 64 --tenant-chains=team-b=8"), "");
  EXPECT_EQ(chains().For("team-a"), 512);
  EXPECT_EQ(chains().For("team-b"), 8);
  EXPECT_EQ(chains().For("team-c"), 64);
}

TEST_F(TenantFlagsTest, ExistForEachBoundAndTheWeight) {
  ASSERT_EQ(Read("--tenant-jobs a=2 --tenant-contents a=3 --tenant-stored-gib a=4 --tenant-rows-per-second a=5 "
                 "--tenant-calls a=6 --tenant-weight a=0.5"),
            "");
  const TenantLimits& holdings = options_.tenant_limits;
  EXPECT_EQ(holdings.jobs.For("a"), 2);
  EXPECT_EQ(holdings.contents.For("a"), 3);
  EXPECT_EQ(holdings.stored_bytes.For("a"), int64_t{4} << 30);
  EXPECT_EQ(options_.batches.tenant_rows_per_second.For("a"), 5);
  EXPECT_EQ(options_.access.tenant_calls.For("a"), 6);
  EXPECT_EQ(options_.shares.weights.For("a"), 0.5);

  const ServerOptions defaults{};
  EXPECT_EQ(holdings.jobs.For("b"), defaults.tenant_limits.jobs.others);
  EXPECT_EQ(holdings.stored_bytes.For("b"), int64_t{4} << 40) << "in bytes, not in GiB";
  EXPECT_EQ(options_.batches.tenant_rows_per_second.For("b"), RowRates::kNone);
  EXPECT_EQ(options_.shares.weights.For("b"), 1);
}

TEST_F(TenantFlagsTest, AWrongTextIsRefusedWithItsFlag) {
  for (const char* text : {"many", "a=", "a=many", "0", "a=0", "a=-1", "a=1.5", "a=1=2", "1073741825", "a=1073741825",
                           "a=99999999999999999999"}) {
    EXPECT_EQ(Read(absl::StrCat("--tenant-jobs ", text)),
              absl::StrCat("--tenant-jobs ", text, ": give N or TENANT=N, where N is an integer from 1 to 1073741824"));
  }
  for (const char* text : {"a=nan", "a=inf", "a=0", "2e6"}) {
    EXPECT_EQ(Read(absl::StrCat("--tenant-weight ", text)),
              absl::StrCat("--tenant-weight ", text, ": give N or TENANT=N, where N is a number from 1e-06 to 1e+06"));
  }
  for (const char* text : {"Team=5", "=5", "a/b=5"}) {
    EXPECT_THAT(Read(absl::StrCat("--tenant-calls ", text)),
                AllOf(StartsWith(absl::StrCat("--tenant-calls ", text, ": ")), HasSubstr("tenant name")));
  }
  EXPECT_EQ(Read("--tenant-chains a=5 --tenant-chains a=6"),
            "--tenant-chains a=6: give one value for a tenant, not two");
  EXPECT_EQ(Read("--tenant-chains 5 --tenant-chains 6"),
            "--tenant-chains 6: give one value for all other tenants, not two");
  EXPECT_EQ(chains().For("a"), ServerOptions().tenant_limits.chains.others) << "no part of a refused flag is taken";
}

TEST_F(TenantFlagsTest, ASettingsFileHasListsThatTheCommandLineReplaces) {
  std::ofstream(path_) << "tenant-chains = [\"64\", \"team-a=512\"]\ntenant-jobs = 5\ntenant-calls = team-a=7\n";
  ASSERT_EQ(Read("--tenant-jobs team-a=9"), "");
  EXPECT_EQ(chains().For("team-a"), 512);
  EXPECT_EQ(chains().For("team-b"), 64);
  EXPECT_EQ(options_.access.tenant_calls.For("team-a"), 7);
  EXPECT_EQ(options_.tenant_limits.jobs.For("team-a"), 9);
  EXPECT_EQ(options_.tenant_limits.jobs.For("team-b"), ServerOptions().tenant_limits.jobs.others);
}

TEST_F(TenantFlagsTest, AWrongLineOfASettingsFileIsNamed) {
  std::ofstream(path_) << "tenant-jobs = 5\ntenant-chains = team-a=many\n";
  EXPECT_THAT(Read(""), StartsWith(absl::StrCat(path_, ":2: --tenant-chains team-a=many: ")));
  std::ofstream(path_) << "tenant-jobs = 5\ntenant-chains = [1,  # others\n  \"team-a=many\",\n  \"team-b=1\"]\n";
  EXPECT_THAT(Read(""), StartsWith(absl::StrCat(path_, ":3: --tenant-chains team-a=many: ")));
}

TEST_F(TenantFlagsTest, TheirHelpHasTheDefaults) {
  CLI::App app;
  AddTenantFlags(&app, &options_);
  EXPECT_THAT(app.get_option("--tenant-stored-gib")->get_description(), HasSubstr("default: 4096;"));
  EXPECT_THAT(app.get_option("--tenant-rows-per-second")->get_description(), HasSubstr("default: none;"));
  EXPECT_THAT(app.get_option("--tenant-weight")->get_description(), HasSubstr("default: 1;"));
}

}  // namespace
}  // namespace chainfleet
