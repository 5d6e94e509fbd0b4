// Plain alternatives to each stage of a draw's path, on the same bytes; compare with draw_path/*.
#include <benchmark/benchmark.h>
#include <openssl/evp.h>
#include <sqlite3.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/check.h"

namespace chainfleet {
namespace {

constexpr size_t kParameters = 61706, kDraws = 8, kKinds = 2;  // lenet5, a segment as draw_path/encode_lenet5 makes it

// draws[draw][kind][parameter].
std::vector<std::vector<std::vector<float>>> Draws() {
  std::vector<std::vector<std::vector<float>>> draws(kDraws);
  for (size_t i = 0; i < kDraws; ++i) draws[i].assign(kKinds, std::vector<float>(kParameters, static_cast<float>(i)));
  return draws;
}

std::string JsonHeader() {
  nlohmann::json header;
  header["__metadata__"] = {{"job", "bench-aaaaaa"}, {"chain", "0"}, {"first_index", "0"}};
  size_t begin = 0;
  for (const char* kind : {"theta", "theta_a"}) {
    const size_t end = begin + kDraws * kParameters * sizeof(float);
    header[kind] = {{"dtype", "F32"}, {"shape", {kDraws, kParameters}}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  return header.dump();
}

void Digest(const char* data, size_t size, unsigned char* digest) {
  unsigned int digest_size = 0;
  CHAINFLEET_CHECK(EVP_Digest(data, size, digest, &digest_size, EVP_sha256(), nullptr) == 1);
}

// Writes the header, then copies the tensors behind it into fresh memory; `digest` hashes the whole in one call.
void Encode(benchmark::State& state, bool json, bool digest) {
  const auto draws = Draws();
  size_t bytes = 0;
  for (auto _ : state) {
    std::string file = json ? JsonHeader() : std::string(128, ' ');
    file.reserve(file.size() + kKinds * kDraws * kParameters * sizeof(float));
    for (size_t kind = 0; kind < kKinds; ++kind) {
      for (const auto& draw : draws) {
        file.append(reinterpret_cast<const char*>(draw[kind].data()), kParameters * sizeof(float));
      }
    }
    unsigned char hash[EVP_MAX_MD_SIZE] = {};
    if (digest) Digest(file.data(), file.size(), hash);
    benchmark::DoNotOptimize(file.data());
    benchmark::DoNotOptimize(hash);
    bytes += file.size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void Hash(benchmark::State& state) {
  const std::string bytes(kKinds * kDraws * kParameters * sizeof(float), 'x');
  unsigned char hash[EVP_MAX_MD_SIZE];
  for (auto _ : state) {
    Digest(bytes.data(), bytes.size(), hash);
    benchmark::DoNotOptimize(hash);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}

void Execute(sqlite3* database, const char* sql) {
  CHAINFLEET_CHECK(sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK) << sqlite3_errmsg(database);
}

// One transaction per commit on one thread, without network, checks or protocol: a chain's step and its resume point of
// 200 bytes.
void SqliteCommit(benchmark::State& state) {
  const auto folder = std::filesystem::temp_directory_path() / "chainfleet-bench-sqlite";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  sqlite3* database = nullptr;
  CHAINFLEET_CHECK(sqlite3_open((folder / "state.db").c_str(), &database) == SQLITE_OK);
  Execute(database, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  Execute(database, "CREATE TABLE chains (chain INTEGER PRIMARY KEY, step INTEGER, resume_point BLOB)");
  sqlite3_stmt* update = nullptr;
  const char* sql =
      "INSERT INTO chains VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET step = excluded.step, "
      "resume_point = excluded.resume_point";
  CHAINFLEET_CHECK(sqlite3_prepare_v2(database, sql, -1, &update, nullptr) == SQLITE_OK) << sqlite3_errmsg(database);
  const std::string resume_point(200, 'r');
  int64_t step = 0;
  for (auto _ : state) {
    Execute(database, "BEGIN IMMEDIATE");
    sqlite3_bind_int64(update, 1, step % 16);
    sqlite3_bind_int64(update, 2, ++step);
    sqlite3_bind_blob(update, 3, resume_point.data(), static_cast<int>(resume_point.size()), SQLITE_STATIC);
    CHAINFLEET_CHECK(sqlite3_step(update) == SQLITE_DONE) << sqlite3_errmsg(database);
    sqlite3_reset(update);
    Execute(database, "COMMIT");
  }
  sqlite3_finalize(update);
  sqlite3_close(database);
  std::filesystem::remove_all(folder);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(Encode, memcpy, false, false)->Name("draw_path/rival_encode_memcpy")->UseRealTime();
BENCHMARK_CAPTURE(Encode, json, true, false)->Name("draw_path/rival_encode_json_memcpy")->UseRealTime();
BENCHMARK_CAPTURE(Encode, digest, true, true)->Name("draw_path/rival_encode_json_memcpy_sha256")->UseRealTime();
BENCHMARK(Hash)->Name("draw_path/rival_hash_openssl_one_call")->UseRealTime();
BENCHMARK(SqliteCommit)->Name("draw_path/rival_sqlite_transaction_per_commit")->UseRealTime();

}  // namespace
}  // namespace chainfleet
