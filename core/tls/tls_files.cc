#include "core/tls/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "core/base/environment.h"
#include "core/base/file_system.h"

namespace chainfleet {
namespace {

constexpr char kSystemAuthorities[] = "/etc/ssl/certs/ca-certificates.crt";

absl::StatusOr<std::string> Read(const std::string& path) {
  return RealFileSystem()->ReadRange(path, 0, kMaxTlsFileBytes);
}

BioHandle Open(const std::string& text) {
  BioHandle bio(BIO_new(BIO_s_mem()));
  BIO_write(bio.get(), text.data(), static_cast<int>(text.size()));
  return bio;
}

int NoPassword(char*, int, int, void*) { return -1; }  // else OpenSSL asks at the terminal

absl::Status NoPem(const std::string& path, const char* wanted) {
  return absl::InvalidArgumentError(absl::StrCat(path, " holds no ", wanted, " in PEM form"));
}

absl::Time TimeOf(const ASN1_TIME* field) {
  std::tm time{};
  ASN1_TIME_to_tm(field, &time);
  return absl::FromTM(time, absl::UTCTimeZone());
}

}  // namespace

std::string AuthoritiesFile(const std::string& name) { return name == "system" ? kSystemAuthorities : name; }

TlsFiles ClientTlsFiles() {
  return {.certificate = EnvironmentVariable("CHAINFLEET_CERT_FILE"),
          .key = EnvironmentVariable("CHAINFLEET_KEY_FILE"),
          .authorities = AuthoritiesFile(EnvironmentVariable("CHAINFLEET_CA_FILE"))};
}

absl::StatusOr<CertificateHandle> ReadCertificate(const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, Read(path));
  return ParseCertificate(text, path);
}

absl::StatusOr<std::vector<CertificateHandle>> ReadCertificates(const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, Read(path));
  const BioHandle pem = Open(text);
  std::vector<CertificateHandle> found;
  while (X509* const next = PEM_read_bio_X509(pem.get(), nullptr, NoPassword, nullptr)) found.emplace_back(next);
  const bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!is_at_end) {
    return absl::InvalidArgumentError(absl::StrCat("certificate ", found.size() + 1, " in ", path, " is damaged"));
  }
  if (found.empty()) return NoPem(path, "certificate");
  return found;
}

absl::StatusOr<CertificateHandle> ParseCertificate(const std::string& pem, const std::string& source) {
  CertificateHandle certificate(PEM_read_bio_X509(Open(pem).get(), nullptr, NoPassword, nullptr));
  if (certificate == nullptr) return NoPem(source, "certificate");
  return certificate;
}

absl::StatusOr<KeyHandle> ReadKey(const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string text, Read(path));
  KeyHandle key(PEM_read_bio_PrivateKey(Open(text).get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return NoPem(path, "private key without a password");
  return key;
}

absl::Status CheckTlsFiles(const TlsFiles& files) {
  if (!files.authorities.empty()) CHAINFLEET_RETURN_IF_ERROR(ReadCertificate(files.authorities).status());
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError("give both a certificate and its private key, or neither");
  }
  if (files.certificate.empty()) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(const CertificateHandle certificate, ReadCertificate(files.certificate));
  CHAINFLEET_ASSIGN_OR_RETURN(const KeyHandle key, ReadKey(files.key));
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the key ", files.key, " is not that of ", files.certificate));
}

absl::StatusOr<absl::Time> EarliestExpiry(const std::string& path) {
  CHAINFLEET_ASSIGN_OR_RETURN(const std::vector<CertificateHandle> certificates, ReadCertificates(path));
  absl::Time earliest = absl::InfiniteFuture();
  for (const CertificateHandle& each : certificates) earliest = std::min(earliest, ValidityOf(*each).until);
  return earliest;
}

std::string PemOf(const X509& certificate) {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), &certificate);
  char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(bio.get(), &text));
  return {text, size};
}

Validity ValidityOf(const X509& certificate) {
  return {TimeOf(X509_get0_notBefore(&certificate)), TimeOf(X509_get0_notAfter(&certificate))};
}

}  // namespace chainfleet
