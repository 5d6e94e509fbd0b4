#include "core/tls/httpd/tls_daemon.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/base/log.h"

namespace chainfleet {
namespace {

// TLS 1.2 and 1.3 with forward secrecy and authenticated encryption.
constexpr char kPriorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE";
constexpr unsigned kMaxChain = 16;

// Returns a GnuTLS error code.
int ReadPrivateKey(const std::string& path, gnutls_privkey_t* key) {
  gnutls_datum_t text{};
  int error = gnutls_load_file(path.c_str(), &text);
  if (error < 0) return error;
  gnutls_privkey_init(key);
  error = gnutls_privkey_import_x509_raw(*key, &text, GNUTLS_X509_FMT_PEM, nullptr, 0);
  gnutls_memset(text.data, 0, text.size);
  gnutls_free(text.data);
  if (error < 0) gnutls_privkey_deinit(*key);
  return error;
}

// GnuTLS frees the certificates and the key after the handshake.
int Retrieve(gnutls_session_t session, const gnutls_cert_retr_st*, gnutls_pcert_st** chain, unsigned* length,
             gnutls_ocsp_data_st**, unsigned* num_ocsp, gnutls_privkey_t* key, unsigned* flags) {
  const auto* const files = static_cast<const TlsFiles*>(gnutls_session_get_ptr(session));
  *chain = static_cast<gnutls_pcert_st*>(gnutls_calloc(kMaxChain, sizeof(gnutls_pcert_st)));
  *length = kMaxChain;
  *num_ocsp = 0;
  int error = gnutls_pcert_list_import_x509_file(*chain, length, files->certificate.c_str(), GNUTLS_X509_FMT_PEM,
                                                 nullptr, nullptr, 0);
  if (error >= 0 && (error = ReadPrivateKey(files->key, key)) < 0) {
    for (unsigned i = 0; i < *length; ++i) gnutls_pcert_deinit(*chain + i);
  }
  if (error < 0) {
    Log(LogLevel::kError, "TLS handshake refused: the certificate or its key cannot be read",
        {{"certificate", files->certificate}, {"error", gnutls_strerror(error)}});
    gnutls_free(*chain);
    return -1;
  }
  *flags = GNUTLS_CERT_RETR_DEINIT_ALL;
  return 0;
}

}  // namespace

absl::Status TlsDaemon::Prepare() { return files_.authorities.empty() ? absl::OkStatus() : ReadAuthorities(); }

std::vector<MHD_OptionItem> TlsDaemon::Options() {
  std::vector<MHD_OptionItem> options;
  if (!files_.certificate.empty()) {
    options.push_back({MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, reinterpret_cast<void*>(&Retrieve)});
    options.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kPriorities)});
  }
  options.push_back({MHD_OPTION_END, 0, nullptr});
  return options;
}

void TlsDaemon::OnConnection(MHD_Connection* connection, MHD_ConnectionNotificationCode code) {
  if (files_.certificate.empty()) return;
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    used_.erase(connection);
    return;
  }
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  auto* const session = static_cast<gnutls_session_t>(info->tls_session);
  gnutls_session_set_ptr(session, const_cast<TlsFiles*>(&files_));
  if (authorities_ == nullptr) return;
  ReadAuthoritiesAgain();
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, authorities_.get());
  used_[connection] = authorities_;
  gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
  gnutls_session_set_verify_cert(session, nullptr, 0);  // any name: the authority decides who may connect
}

absl::Status TlsDaemon::ReadAuthorities() {
  CHAINFLEET_ASSIGN_OR_RETURN(std::string pem, RealFileSystem()->ReadRange(files_.authorities, 0, kMaxTlsFileBytes));
  if (pem == pem_ && authorities_ != nullptr) return absl::OkStatus();
  const auto refusal = [this] {
    return absl::InvalidArgumentError(absl::StrCat(files_.authorities, " cannot be read as certificates in PEM form"));
  };
  if (pem == refused_) return refusal();
  gnutls_certificate_credentials_t made = nullptr;
  gnutls_certificate_allocate_credentials(&made);
  Authorities authorities(made, gnutls_certificate_free_credentials);
  const gnutls_datum_t text{reinterpret_cast<unsigned char*>(pem.data()), static_cast<unsigned>(pem.size())};
  if (gnutls_certificate_set_x509_trust_mem(made, &text, GNUTLS_X509_FMT_PEM) <= 0) {
    refused_ = std::move(pem);
    return refusal();
  }
  gnutls_certificate_set_retrieve_function3(made, &Retrieve);
  pem_ = std::move(pem);
  authorities_ = std::move(authorities);
  return absl::OkStatus();
}

void TlsDaemon::ReadAuthoritiesAgain() {
  const Authorities former = authorities_;
  const absl::Status read = ReadAuthorities();
  if (former != authorities_)
    Log(LogLevel::kInfo, "authorities of clients have changed", {{"file", files_.authorities}});
  const std::string error(read.message());
  if (std::exchange(error_, error) == error || read.ok()) return;
  Log(LogLevel::kError, "authorities of clients not read again: the former ones stay in use", {{"error", error}});
}

}  // namespace chainfleet
