#include "core/metrics/certificate_expiry.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/tls/authority.h"
#include "core/tls/tls_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class CertificateExpiryTest : public testing::Test {
 protected:
  CertificateExpiryTest() {
    std::string folder = testing::TempDir() + "/expiry-XXXXXX";
    folder_ = mkdtemp(folder.data());
    EXPECT_TRUE(InitAuthority(folder_, Until(2'100'000'000)).ok());
  }
  ~CertificateExpiryTest() override { std::filesystem::remove_all(folder_); }

  static Validity Until(int64_t seconds) {
    return {absl::FromUnixSeconds(1'700'000'000), absl::FromUnixSeconds(seconds)};
  }
  std::string File(const std::string& name) const { return folder_ + "/" + name + ".crt"; }
  void Issue(const std::string& name, int64_t until) const {
    ASSERT_TRUE(IssueCertificate(folder_, name, {"127.0.0.1"}, Until(until)).ok());
  }

  // Returns the values by the label `certificate`.
  static std::map<std::string, double> Shown(const CertificateFiles& files) {
    std::map<std::string, double> shown;
    for (const GaugeFamily::Sample& sample : CertificateExpiry(files).samples) {
      EXPECT_EQ(sample.labels.size(), 1u);
      shown[sample.labels.at("certificate")] = sample.value;
    }
    return shown;
  }

  std::string folder_;
};

TEST_F(CertificateExpiryTest, IsTheTimeInTheFileNow) {
  const CertificateFiles files{{"server", File("server")}};
  EXPECT_EQ(CertificateExpiry(files).name, "chainfleet_tls_certificate_expiry_timestamp_seconds");
  EXPECT_THAT(Shown(files), IsEmpty()) << "a file that is missing";
  Issue("server", 2'000'000'000);
  EXPECT_THAT(Shown(files), ElementsAre(Pair("server", 2e9)));
  ASSERT_TRUE(RenewCertificate(folder_, "server", Until(2'050'000'000)).ok());
  EXPECT_THAT(Shown(files), ElementsAre(Pair("server", 2.05e9))) << "renewed";
}

TEST_F(CertificateExpiryTest, EachFileThatCanBeReadHasASample) {
  Issue("server", 2'000'000'000);
  EXPECT_THAT(
      Shown({{"server", File("server")}, {"client_ca", File("ca")}, {"metrics", ""}, {"worker", File("missing")}}),
      ElementsAre(Pair("client_ca", 2.1e9), Pair("server", 2e9)));
}

TEST_F(CertificateExpiryTest, CountsTheFirstToExpireInABundle) {
  ASSERT_TRUE(InitAuthority(folder_ + "/next", Until(1'900'000'000)).ok());
  std::ofstream(File("falling")) << std::ifstream(File("ca")).rdbuf() << std::ifstream(File("next/ca")).rdbuf();
  std::ofstream(File("rising")) << std::ifstream(File("next/ca")).rdbuf() << std::ifstream(File("ca")).rdbuf();
  EXPECT_THAT(Shown({{"client_ca", File("rising")}, {"server_ca", File("falling")}}),
              ElementsAre(Pair("client_ca", 1.9e9), Pair("server_ca", 1.9e9)));
}

TEST_F(CertificateExpiryTest, AuthoritiesOfTheHostHaveNoSample) {
  ASSERT_TRUE(EarliestExpiry(AuthoritiesFile("system")).ok());
  EXPECT_THAT(Shown({{"server_ca", AuthoritiesFile("system")}}), IsEmpty());
}

}  // namespace
}  // namespace chainfleet
