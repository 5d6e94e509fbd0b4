// Reads a page on a port of this host by TLS, as Prometheus does with `scheme: https`.
#pragma once

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <unistd.h>

#include <string>

#include "tests/support/scrape.h"

namespace chainfleet {

struct SecuredReply {
  std::string certificate;  // DER; "" if there was no handshake
  std::string text;         // whole HTTP response
};

// `descriptor`: from Dial, is closed; `authority`: the file of the authority that must have signed the server's
// certificate. When the certificate expires does not matter. Shows the server the certificate in the files CLIENT.crt
// and CLIENT.key unless `client` is empty.
inline SecuredReply ScrapeByTls(int descriptor, const std::string& authority, const std::string& path,
                                const std::string& client = "") {
  SecuredReply reply;
  gnutls_certificate_credentials_t trusted;
  gnutls_certificate_allocate_credentials(&trusted);
  gnutls_certificate_set_x509_trust_file(trusted, authority.c_str(), GNUTLS_X509_FMT_PEM);
  if (!client.empty()) {
    const std::string certificate = client + ".crt", key = client + ".key";
    gnutls_certificate_set_x509_key_file(trusted, certificate.c_str(), key.c_str(), GNUTLS_X509_FMT_PEM);
  }
  gnutls_session_t session;
  gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
  gnutls_set_default_priority(session);
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, trusted);
  gnutls_session_set_verify_cert(session, "127.0.0.1", GNUTLS_VERIFY_DISABLE_TIME_CHECKS);
  gnutls_transport_set_int(session, descriptor);
  if (descriptor >= 0 && gnutls_handshake(session) == GNUTLS_E_SUCCESS) {
    unsigned count = 0;
    const gnutls_datum_t* const chain = gnutls_certificate_get_peers(session, &count);
    reply.certificate.assign(reinterpret_cast<const char*>(chain->data), chain->size);
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    gnutls_record_send(session, request.data(), request.size());
    char buffer[4096];
    for (ssize_t got; (got = gnutls_record_recv(session, buffer, sizeof buffer)) > 0;)
      reply.text.append(buffer, static_cast<size_t>(got));
  }
  gnutls_deinit(session);
  gnutls_certificate_free_credentials(trusted);
  ::close(descriptor);
  return reply;
}

}  // namespace chainfleet
