#include "core/tls/httpd/tls_daemon.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

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

absl::Status TlsDaemon::Prepare() {
  if (files_.authorities.empty()) return absl::OkStatus();
  CHAINFLEET_ASSIGN_OR_RETURN(authorities_, RealFileSystem()->Read(files_.authorities));
  return absl::OkStatus();
}

std::vector<MHD_OptionItem> TlsDaemon::Options() {
  std::vector<MHD_OptionItem> options;
  if (!files_.certificate.empty()) {
    options.push_back({MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, reinterpret_cast<void*>(&Retrieve)});
    options.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kPriorities)});
    if (!authorities_.empty()) options.push_back({MHD_OPTION_HTTPS_MEM_TRUST, 0, authorities_.data()});
  }
  options.push_back({MHD_OPTION_END, 0, nullptr});
  return options;
}

void TlsDaemon::PrepareHandshake(MHD_Connection* connection) {
  if (files_.certificate.empty()) return;
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  auto* const session = static_cast<gnutls_session_t>(info->tls_session);
  gnutls_session_set_ptr(session, const_cast<TlsFiles*>(&files_));
  if (authorities_.empty()) return;
  gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
  gnutls_session_set_verify_cert(session, nullptr, 0);  // any name: the authority decides who may connect
}

}  // namespace chainfleet
