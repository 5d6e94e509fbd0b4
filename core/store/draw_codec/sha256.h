// SHA-256 by OpenSSL: the digest of objects, segments and data sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace chainfleet {

// Returns 64 lower-case hex digits.
std::string Sha256Hex(const std::string& bytes);

// Hashes piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(const void* data, size_t size);
  void Update(const std::string& bytes) { Update(bytes.data(), bytes.size()); }

  // Hashes 8 bytes little-endian.
  void UpdateInteger(int64_t value) { Update(&value, sizeof value); }
  // Hashes the length in 8 bytes, then the bytes: different lists of strings never give the same stream.
  void UpdateString(const std::string& text) {
    UpdateInteger(static_cast<int64_t>(text.size()));
    Update(text);
  }

  // Returns the digest in hex. Call once, at the end.
  std::string Hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace chainfleet
