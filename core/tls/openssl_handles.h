// Owners of OpenSSL's objects, and its type of bytes.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string_view>

namespace chainfleet {

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};
using BioHandle = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using CertificateHandle = std::unique_ptr<X509, FreeWith<X509_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using DigestHandle = std::unique_ptr<EVP_MD_CTX, FreeWith<EVP_MD_CTX_free>>;

inline const unsigned char* UnsignedBytes(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace chainfleet
