#include "core/tls/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/tls/tls_files.h"

namespace chainfleet {
namespace {

using StoreHandle = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using CheckHandle = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;

const absl::Time kNow = absl::FromUnixSeconds(2'000'000'000);

class AuthorityTest : public testing::Test {
 protected:
  AuthorityTest() {
    std::string folder = testing::TempDir() + "/authority-XXXXXX";
    folder_ = mkdtemp(folder.data());
    EXPECT_TRUE(InitAuthority(folder_, For(3650)).ok());
  }
  ~AuthorityTest() override { std::filesystem::remove_all(folder_); }

  static Validity For(int days) { return {kNow - absl::Minutes(5), kNow + absl::Hours(24 * days)}; }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  TlsFiles Files(const std::string& name) const { return {Path(name + ".crt"), Path(name + ".key"), Path("ca.crt")}; }

  // Returns true if the authority in `authority` signed a certificate that is valid at kNow, for servers and for
  // clients.
  static bool IsTrusted(const std::string& certificate, const std::string& authority) {
    const StoreHandle store(X509_STORE_new());
    X509_STORE_add_cert(store.get(), ReadCertificate(authority)->get());
    const CertificateHandle leaf = *ReadCertificate(certificate);
    for (const char* purpose : {"ssl_server", "ssl_client"}) {
      const CheckHandle check(X509_STORE_CTX_new());
      X509_STORE_CTX_init(check.get(), store.get(), leaf.get(), nullptr);
      X509_STORE_CTX_set_default(check.get(), purpose);
      X509_STORE_CTX_set_time(check.get(), 0, absl::ToTimeT(kNow));
      X509_STORE_CTX_set_flags(check.get(), X509_V_FLAG_X509_STRICT);
      if (X509_verify_cert(check.get()) != 1) return false;
    }
    return true;
  }

  std::string folder_;
};

TEST_F(AuthorityTest, IssuedCertificatesAreTrustedAndNameTheirHosts) {
  const auto written = IssueCertificate(folder_, "server", {"fleet.example.org", "10.0.0.5", "::1"}, For(365));
  ASSERT_EQ(written.value(), Path("server.crt"));
  EXPECT_TRUE(IsTrusted(*written, Path("ca.crt")));
  EXPECT_TRUE(CheckTlsFiles(Files("server")).ok());
  const CertificateHandle certificate = *ReadCertificate(*written);
  EXPECT_EQ(X509_check_host(certificate.get(), "fleet.example.org", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(certificate.get(), "other.example.org", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "10.0.0.5", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "::1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(certificate.get(), "10.0.0.6", 0), 0);
  EXPECT_NEAR(absl::ToDoubleHours(ValidityOf(*certificate).until - kNow), 365 * 24, 0.1);
}

TEST_F(AuthorityTest, AnotherAuthorityDoesNotTrustThem) {
  ASSERT_TRUE(IssueCertificate(folder_, "server", {"localhost"}, For(365)).ok());
  ASSERT_TRUE(InitAuthority(Path("other"), For(365)).ok());
  EXPECT_FALSE(IsTrusted(Path("server.crt"), Path("other/ca.crt")));
}

TEST_F(AuthorityTest, ACertificateCannotSignOthers) {
  ASSERT_TRUE(IssueCertificate(folder_, "server", {"localhost"}, For(365)).ok());
  EXPECT_EQ(X509_check_ca(ReadCertificate(Path("server.crt"))->get()), 0);
  EXPECT_EQ(X509_check_ca(ReadCertificate(Path("ca.crt"))->get()), 1);
}

TEST_F(AuthorityTest, ARenewedCertificateHasTheSameKeyAndHosts) {
  ASSERT_TRUE(IssueCertificate(folder_, "server", {"localhost"}, {kNow - absl::Hours(48), kNow - absl::Hours(1)}).ok());
  EXPECT_FALSE(IsTrusted(Path("server.crt"), Path("ca.crt"))) << "expired";
  ASSERT_TRUE(RenewCertificate(folder_, "server", For(365)).ok());
  EXPECT_TRUE(IsTrusted(Path("server.crt"), Path("ca.crt")));
  EXPECT_TRUE(CheckTlsFiles(Files("server")).ok());
  EXPECT_EQ(X509_check_host(ReadCertificate(Path("server.crt"))->get(), "localhost", 0, 0, nullptr), 1);
}

TEST_F(AuthorityTest, OnlyTheOwnerReadsKeys) {
  ASSERT_TRUE(IssueCertificate(folder_, "server", {}, For(365)).ok());
  for (const char* name : {"ca.key", "server.key"}) {
    struct stat file {};
    ASSERT_EQ(stat(Path(name).c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600U) << name;
  }
}

TEST_F(AuthorityTest, NothingIsReplacedByAnotherKey) {
  ASSERT_TRUE(IssueCertificate(folder_, "server", {}, For(365)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(InitAuthority(folder_, For(1))));
  EXPECT_TRUE(absl::IsAlreadyExists(IssueCertificate(folder_, "server", {}, For(1)).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(IssueCertificate(folder_, "ca", {}, For(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(RenewCertificate(folder_, "nobody", For(1)).status()));
  EXPECT_TRUE(absl::IsNotFound(IssueCertificate(Path("nowhere"), "server", {}, For(1)).status()));
}

TEST_F(AuthorityTest, HostsAndNamesCannotAddEntriesOrPaths) {
  for (const char* host : {"a,DNS:b", "", "a b", "http://a", "dirName:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(IssueCertificate(folder_, "server", {host}, For(1)).status())) << host;
  }
  for (const char* name : {"../server", "", "a/b", "A"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(IssueCertificate(folder_, name, {}, For(1)).status())) << name;
  }
}

TEST_F(AuthorityTest, WrongFilesAreNamed) {
  ASSERT_TRUE(IssueCertificate(folder_, "one", {}, For(365)).ok());
  ASSERT_TRUE(IssueCertificate(folder_, "two", {}, For(365)).ok());
  std::ofstream(Path("noise")) << "no certificate";
  const auto said = [](const TlsFiles& files) { return std::string(CheckTlsFiles(files).message()); };
  EXPECT_THAT(said({Path("one.crt"), Path("two.key"), ""}), testing::HasSubstr("two.key is not that of"));
  EXPECT_THAT(said({Path("one.crt"), "", ""}), testing::HasSubstr("both a certificate and its private key"));
  EXPECT_THAT(said({Path("noise"), Path("one.key"), ""}), testing::HasSubstr("noise holds no certificate"));
  EXPECT_THAT(said({Path("one.crt"), Path("noise"), ""}), testing::HasSubstr("noise holds no private key"));
  EXPECT_THAT(said({"", "", Path("missing")}), testing::HasSubstr("missing"));
  EXPECT_TRUE(CheckTlsFiles({}).ok());
}

TEST_F(AuthorityTest, ADamagedCertificateIsNotTheEndOfTheFile) {
  const std::string good = PemOf(**ReadCertificate(Path("ca.crt")));
  const auto read = [this](const std::string& text) {
    std::ofstream(Path("all.crt")) << text;
    return ReadCertificates(Path("all.crt"));
  };
  EXPECT_EQ(read(good + good + "text below\n")->size(), 2u);
  std::string changed = good;
  changed[changed.size() / 2] = '!';
  for (const std::string& damaged : {changed, good.substr(0, good.size() / 2)}) {
    const absl::Status status = read(good + damaged).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("certificate 2 in " + Path("all.crt")));
    EXPECT_EQ(EarliestExpiry(Path("all.crt")).status(), status);
  }
}

}  // namespace
}  // namespace chainfleet
