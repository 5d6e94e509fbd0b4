#include "core/metrics/certificate_expiry.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/tls/authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::IsEmpty;

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
  TlsFiles Files(const std::string& name) const {
    return {folder_ + "/" + name + ".crt", folder_ + "/" + name + ".key", ""};
  }
  void Issue(const std::string& name, int64_t until) {
    ASSERT_TRUE(IssueCertificate(folder_, name, {"127.0.0.1"}, Until(until)).ok());
  }

  std::string folder_;
};

TEST_F(CertificateExpiryTest, IsTheTimeInTheFileAndAbsentWithoutTls) {
  EXPECT_THAT(CertificateExpiry({Files("server")}).samples, IsEmpty()) << "a file that is missing";
  Issue("server", 2'000'000'000);
  const GaugeFamily family = CertificateExpiry({Files("server")});
  EXPECT_EQ(family.name, "chainfleet_tls_certificate_expiry_timestamp_seconds");
  ASSERT_EQ(family.samples.size(), 1u);
  EXPECT_THAT(family.samples[0].labels, IsEmpty());
  EXPECT_EQ(family.samples[0].value, 2e9);
  ASSERT_TRUE(RenewCertificate(folder_, "server", Until(2'050'000'000)).ok());
  ASSERT_EQ(CertificateExpiry({Files("server")}).samples.size(), 1u);
  EXPECT_EQ(CertificateExpiry({Files("server")}).samples[0].value, 2.05e9) << "renewed";
  EXPECT_THAT(CertificateExpiry({TlsFiles{}, TlsFiles{}}).samples, IsEmpty());
}

TEST_F(CertificateExpiryTest, IsThatOfTheCertificateThatExpiresFirst) {
  Issue("server", 2'000'000'000);
  Issue("metrics", 1'900'000'000);
  for (const auto& ports : {std::vector{Files("server"), Files("metrics")},
                            {Files("metrics"), Files("server")},
                            {Files("missing"), Files("metrics"), TlsFiles{}}}) {
    ASSERT_EQ(CertificateExpiry(ports).samples.size(), 1u);
    EXPECT_EQ(CertificateExpiry(ports).samples[0].value, 1.9e9);
  }
}

}  // namespace
}  // namespace chainfleet
