#include "core/tls/worker_certificate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "core/tls/authority.h"

namespace chainfleet {
namespace {

const Validity kDay{absl::FromUnixSeconds(2'000'000'000), absl::FromUnixSeconds(2'000'086'400)};
const WorkerClaims kClaims{"host-7.rack_2@site", "00ff", "vision", "4f1a9c02d7e8"};

class WorkerCertificateTest : public testing::Test {
 protected:
  ~WorkerCertificateTest() override { std::filesystem::remove_all(folder_); }

  static std::string NewFolder() {
    std::string folder = testing::TempDir() + "/workers-XXXXXX";
    return mkdtemp(folder.data());
  }
  Signer NewAuthority(const std::string& name) const {
    EXPECT_TRUE(InitAuthority(folder_ + "/" + name, kDay).ok());
    return OpenAuthority(folder_ + "/" + name).value();
  }

  const std::string folder_ = NewFolder();
  const Signer authority_ = NewAuthority("first");
  const SigningKey key_;
};

TEST_F(WorkerCertificateTest, SaysWhatItWasIssuedFor) {
  const auto der = WorkerCertificate::Issue(authority_, kClaims, key_.public_key(), kDay);
  ASSERT_TRUE(der.ok()) << der.status();
  const auto read = WorkerCertificate::Read(*der, *authority_.certificate);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->claims(), kClaims);
  EXPECT_EQ(read->validity().from, kDay.from);
  EXPECT_EQ(read->validity().until, kDay.until);
  EXPECT_EQ(read->base64(), absl::Base64Escape(*der));
}

TEST_F(WorkerCertificateTest, SaysWhetherItsWorkerSignsResumePoints) {
  for (const bool signs : {false, true}) {
    WorkerClaims claims = kClaims;
    claims.signs_resume_points = signs;
    const std::string der = WorkerCertificate::Issue(authority_, claims, key_.public_key(), kDay).value();
    EXPECT_EQ(WorkerCertificate::Read(der, *authority_.certificate)->claims(), claims);
  }
}

TEST_F(WorkerCertificateTest, AnAuthoritySignsTextsThatItsCertificateVerifies) {
  const Signer other = NewAuthority("other");
  const std::string signature = SignText(authority_, "a resume point");
  EXPECT_TRUE(HasSigned(*authority_.certificate, "a resume point", signature));
  EXPECT_FALSE(HasSigned(*authority_.certificate, "another", signature));
  EXPECT_FALSE(HasSigned(*other.certificate, "a resume point", signature));
  for (const std::string& damaged : {std::string(), signature.substr(1), signature + "x"}) {
    EXPECT_FALSE(HasSigned(*authority_.certificate, "a resume point", damaged));
  }
}

TEST_F(WorkerCertificateTest, AFolderMayNameFormerAuthorities) {
  ASSERT_EQ(authority_.trusted.size(), 1u);
  EXPECT_EQ(PemOf(*authority_.trusted[0]), PemOf(*authority_.certificate));
  const Signer other = NewAuthority("other"), third = NewAuthority("third");
  std::ofstream(folder_ + "/first/former.crt") << PemOf(*other.certificate) << PemOf(*third.certificate);
  const auto opened = OpenAuthority(folder_ + "/first");
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_EQ(opened->trusted.size(), 3u);
  EXPECT_EQ(PemOf(*opened->trusted[2]), PemOf(*third.certificate));
  std::ofstream(folder_ + "/first/former.crt") << "no certificate";
  EXPECT_TRUE(absl::IsInvalidArgument(OpenAuthority(folder_ + "/first").status()));
}

TEST_F(WorkerCertificateTest, KnowsTheSignaturesOfItsKeyOnly) {
  const std::string der = WorkerCertificate::Issue(authority_, kClaims, key_.public_key(), kDay).value();
  const WorkerCertificate certificate = WorkerCertificate::Read(der, *authority_.certificate).value();
  const std::string signature = key_.Sign("a segment");
  EXPECT_TRUE(certificate.HasSigned("a segment", signature));
  EXPECT_FALSE(certificate.HasSigned("another", signature));
  EXPECT_FALSE(certificate.HasSigned("a segment", SigningKey().Sign("a segment")));
  EXPECT_FALSE(certificate.HasSigned("a segment", ""));
  EXPECT_FALSE(certificate.HasSigned("a segment", signature.substr(1)));
}

TEST(IsSignedBy, KnowsTheSecondExampleOfRfc8032) {
  const std::string key = absl::HexStringToBytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const std::string signature = absl::HexStringToBytes(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(IsSignedBy(key, "r", signature));
  EXPECT_FALSE(IsSignedBy(key, "s", signature));
  for (const size_t size : {0, 31}) EXPECT_FALSE(IsSignedBy(key.substr(0, size), "r", signature)) << size;
}

TEST_F(WorkerCertificateTest, IsRefusedIfChangedOrFromAnotherAuthority) {
  std::string der = WorkerCertificate::Issue(authority_, kClaims, key_.public_key(), kDay).value();
  const Signer other = NewAuthority("other");
  EXPECT_TRUE(absl::IsUnauthenticated(WorkerCertificate::Read(der, *other.certificate).status()));
  EXPECT_FALSE(WorkerCertificate::Read(der + "x", *authority_.certificate).ok());
  EXPECT_FALSE(WorkerCertificate::Read("", *authority_.certificate).ok());
  const size_t name = der.find("host-7");
  ASSERT_NE(name, std::string::npos);
  der[name] = 'H';
  EXPECT_FALSE(WorkerCertificate::Read(der, *authority_.certificate).ok());
}

TEST_F(WorkerCertificateTest, TheAuthoritysOwnNamesNoWorker) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(authority_.certificate.get(), &bytes);
  const std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  EXPECT_TRUE(absl::IsUnauthenticated(WorkerCertificate::Read(der, *authority_.certificate).status()));
}

TEST_F(WorkerCertificateTest, NeedsAKey) {
  EXPECT_TRUE(absl::IsInvalidArgument(WorkerCertificate::Issue(authority_, kClaims, "short", kDay).status()));
}

}  // namespace
}  // namespace chainfleet
