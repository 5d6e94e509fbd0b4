#include "core/tls/authority.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file_system.h"
#include "core/base/ids.h"
#include "core/base/peer_name.h"
#include "core/tls/tls_files.h"

namespace chainfleet {
namespace {

constexpr char kAuthorityName[] = "chainfleet authority", kUses[] = "serverAuth,clientAuth";

struct Paths {
  Paths(const std::string& folder, const std::string& name)
      : certificate(folder + "/" + name + ".crt"), key(folder + "/" + name + ".key") {}
  std::string certificate, key;
};

// Writes what `print` prints. `mode` limits who reads the file from its first byte on.
absl::Status WritePem(const std::string& path, mode_t mode, const std::function<int(BIO*)>& print) {
  const std::string temporary = path + ".new";
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
  if (descriptor < 0) return absl::FailedPreconditionError(absl::StrCat("cannot write ", temporary));
  bool written = ::fchmod(descriptor, mode) == 0;
  {
    const BioHandle bio(BIO_new_fd(descriptor, BIO_NOCLOSE));
    written = written && print(bio.get()) == 1;
  }
  written = written && ::fsync(descriptor) == 0;
  ::close(descriptor);
  if (!written) return absl::FailedPreconditionError(absl::StrCat("cannot write ", temporary));
  return RealFileSystem()->Rename(temporary, path);
}

absl::Status WriteCertificate(const std::string& path, X509* certificate) {
  return WritePem(path, 0644, [=](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

absl::Status WriteKey(const std::string& path, EVP_PKEY* key) {
  return WritePem(path, 0600,
                  [=](BIO* bio) { return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

// Returns the extension subjectAltName of hosts. INVALID_ARGUMENT: a host would be more than one entry.
absl::StatusOr<std::string> AlternativeNames(const std::vector<std::string>& hosts) {
  std::vector<std::string> entries;
  for (const std::string& host : hosts) {
    const bool is_address = ParseIp(host).has_value();
    const bool is_name = !host.empty() && std::ranges::all_of(host, [](char c) {
      return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '*' || c == '_';
    });
    if (!is_address && !is_name) {
      return absl::InvalidArgumentError(absl::StrCat("\"", host, "\" is neither a DNS name nor an IP address"));
    }
    entries.push_back(absl::StrCat(is_address ? "IP:" : "DNS:", host));
  }
  return absl::StrJoin(entries, ",");
}

absl::Status Unsigned(const std::string& name) {
  return absl::InternalError(absl::StrCat("OpenSSL cannot sign the certificate of ", name));
}

}  // namespace

absl::Status InitAuthority(const std::string& folder, const Validity& validity) {
  CHAINFLEET_RETURN_IF_ERROR(RealFileSystem()->CreateFolders(folder));
  const Paths paths(folder, "ca");
  if (RealFileSystem()->SizeBytes(paths.key).ok()) {
    return absl::AlreadyExistsError(absl::StrCat(folder, " already has an authority"));
  }
  KeyHandle key(EVP_EC_gen("P-256"));
  CertificateHandle certificate = Blank(kAuthorityName, key.get(), validity);
  X509* const own = certificate.get();
  const bool made = AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    AddExtension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    AddExtension(own, own, NID_subject_key_identifier, "hash");
  const Signer self{std::move(certificate), std::move(key)};
  if (!made || !Sign(own, self)) return Unsigned("the authority");
  CHAINFLEET_RETURN_IF_ERROR(WriteKey(paths.key, self.key.get()));
  return WriteCertificate(paths.certificate, own);
}

absl::StatusOr<std::string> IssueCertificate(const std::string& folder, const std::string& name,
                                             const std::vector<std::string>& hosts, const Validity& validity) {
  CHAINFLEET_RETURN_IF_ERROR(CheckName("certificate", name));
  const Paths paths(folder, name);
  CHAINFLEET_ASSIGN_OR_RETURN(const Signer authority, OpenAuthority(folder));
  if (RealFileSystem()->SizeBytes(paths.key).ok()) {
    return absl::AlreadyExistsError(absl::StrCat(paths.key, " exists: `chainfleet pki renew ", name, "` renews it"));
  }
  CHAINFLEET_ASSIGN_OR_RETURN(const std::string names, AlternativeNames(hosts));
  const KeyHandle key(EVP_EC_gen("P-256"));
  const CertificateHandle certificate = Blank(name, key.get(), validity);
  X509* const own = certificate.get();
  const bool made = AddExtension(own, nullptr, NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(own, nullptr, NID_key_usage, "critical,digitalSignature") &&
                    AddExtension(own, nullptr, NID_ext_key_usage, kUses) &&
                    (names.empty() || AddExtension(own, nullptr, NID_subject_alt_name, names));
  if (!made || !Sign(own, authority)) return Unsigned(name);
  CHAINFLEET_RETURN_IF_ERROR(WriteKey(paths.key, key.get()));
  CHAINFLEET_RETURN_IF_ERROR(WriteCertificate(paths.certificate, own));
  return paths.certificate;
}

absl::StatusOr<std::string> RenewCertificate(const std::string& folder, const std::string& name,
                                             const Validity& validity) {
  CHAINFLEET_RETURN_IF_ERROR(CheckName("certificate", name));
  const Paths paths(folder, name);
  CHAINFLEET_ASSIGN_OR_RETURN(const Signer authority, OpenAuthority(folder));
  CHAINFLEET_ASSIGN_OR_RETURN(const CertificateHandle old, ReadCertificate(paths.certificate));
  CHAINFLEET_ASSIGN_OR_RETURN(const KeyHandle key, ReadKey(paths.key));
  const CertificateHandle renewed = Blank(name, key.get(), validity);
  // The authority's key identifier is signed anew.
  for (int i = 0; i < X509_get_ext_count(old.get()); ++i) {
    X509_EXTENSION* const extension = X509_get_ext(old.get(), i);
    if (OBJ_obj2nid(X509_EXTENSION_get_object(extension)) == NID_authority_key_identifier) continue;
    X509_add_ext(renewed.get(), extension, -1);
  }
  if (!Sign(renewed.get(), authority)) return Unsigned(name);
  CHAINFLEET_RETURN_IF_ERROR(WriteCertificate(paths.certificate, renewed.get()));
  return paths.certificate;
}

}  // namespace chainfleet
