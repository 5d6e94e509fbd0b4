// One conformance suite over every implementation.
#include "core/store/blob_store/blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/spool_file.h"
#include "core/store/blob_store/file_blob_store.h"
#include "tests/support/memory_blob_store.h"
#include "tests/support/s3_harness.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

struct Implementation {
  std::string name;
  std::function<std::unique_ptr<BlobStore>(const std::string& folder)> open;
};

class BlobStoreConformance : public ::testing::TestWithParam<Implementation> {
 protected:
  ~BlobStoreConformance() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = ::testing::TempDir() + "blobs-" + std::to_string(::getpid());
  std::unique_ptr<BlobStore> store_ = GetParam().open(folder_);
};

TEST_P(BlobStoreConformance, ReturnsTheBytesThatWerePut) {
  ASSERT_TRUE(store_->Put("a/b", "hello").ok());
  EXPECT_EQ(store_->Get("a/b").value(), "hello");
  EXPECT_EQ(store_->GetRange("a/b", 1, 3).value(), "ell");
  EXPECT_EQ(store_->GetRange("a/b", 3, 99).value(), "lo");
  EXPECT_EQ(store_->SizeBytes("a/b").value(), 5);
}

TEST_P(BlobStoreConformance, TakesAFileAsItTakesBytes) {
  const auto file = SpoolFile::Make(::testing::TempDir());
  ASSERT_TRUE(file->Write(0, "hello", 5).ok());
  ASSERT_TRUE(store_->Put("a/b", file->Content(5)).ok());
  EXPECT_EQ(store_->Get("a/b").value(), "hello");
  EXPECT_TRUE(store_->Put("a/b", file->Content(5)).ok()) << "the same bytes again";
  EXPECT_EQ(store_->Put("a/b", "jello").code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(store_->Replace("a/b", "jello").ok());
  EXPECT_EQ(store_->Put("a/b", file->Content(5)).code(), absl::StatusCode::kAlreadyExists);
}

TEST_P(BlobStoreConformance, NeverOverwrites) {
  ASSERT_TRUE(store_->Put("a/b", "one").ok());
  EXPECT_TRUE(store_->Put("a/b", "one").ok()) << "the same bytes again";
  EXPECT_EQ(store_->Put("a/b", "two").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store_->Get("a/b").value(), "one");
}

TEST_P(BlobStoreConformance, DamagedContentAddressedObjectIsPutAgain) {
  ASSERT_TRUE(store_->Put("a/digest-of-one", "ome").ok());
  ASSERT_TRUE(store_->Put("a/other", "other").ok());
  EXPECT_TRUE(PutContentAddressed(store_.get(), "a/digest-of-one", "one").ok());
  EXPECT_EQ(store_->Get("a/digest-of-one").value(), "one");
  EXPECT_TRUE(PutContentAddressed(store_.get(), "a/digest-of-one", "one").ok()) << "the same bytes again";
  EXPECT_TRUE(PutContentAddressed(store_.get(), "b/digest-of-two", "two").ok()) << "nothing was there";
  EXPECT_EQ(store_->Get("b/digest-of-two").value(), "two");
  EXPECT_THAT(*store_->List(""), ElementsAre("a/digest-of-one", "a/other", "b/digest-of-two"));
}

TEST_P(BlobStoreConformance, MissingObjectsAreNotFound) {
  EXPECT_EQ(store_->Get("a/b").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->SizeBytes("a/b").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->Delete("a/b").ok());
}

TEST_P(BlobStoreConformance, ListsByFolderInOrder) {
  for (const char* name : {"x/2", "x/1/deep", "y/1"}) ASSERT_TRUE(store_->Put(name, "").ok());
  EXPECT_THAT(*store_->List("x/"), ElementsAre("x/1/deep", "x/2"));
  EXPECT_THAT(*store_->List(""), ElementsAre("x/1/deep", "x/2", "y/1"));
  EXPECT_THAT(*store_->List("z/"), ElementsAre());
  ASSERT_TRUE(store_->Delete("x/2").ok());
  EXPECT_THAT(*store_->List("x/"), ElementsAre("x/1/deep"));
}

TEST_P(BlobStoreConformance, PagesKeepTheNamesOfAFolderTogether) {
  const std::vector<std::string> folders = {"x/a", "x/a-b", "x/c/d"};  // in byte order x/a-b/ comes before x/a/
  std::set<std::string> put;
  for (size_t i = 0; i < 1'020; ++i) put.insert(folders[i % 3] + "/" + std::to_string(i));
  for (const std::string& name : put) ASSERT_TRUE(store_->Put(name, "").ok());
  ASSERT_TRUE(store_->Put("y/1", "").ok());
  std::vector<std::string> listed, entered;
  int pages = 0;
  const auto take = [&](const std::vector<std::string>& page) {
    ++pages;
    EXPECT_LE(page.size(), kListPage);
    for (const std::string& name : page) {
      listed.push_back(name);
      const std::string folder = name.substr(0, name.rfind('/'));
      if (entered.empty() || entered.back() != folder) entered.push_back(folder);
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(store_->ListPages("x/", take).ok());
  EXPECT_GE(pages, 2);
  EXPECT_THAT(listed, UnorderedElementsAreArray(put));
  EXPECT_THAT(entered, UnorderedElementsAreArray(folders));
  pages = 0;
  const auto refuse = [&](const std::vector<std::string>&) {
    ++pages;
    return absl::AbortedError("enough");
  };
  EXPECT_TRUE(absl::IsAborted(store_->ListPages("x/", refuse)));
  EXPECT_EQ(pages, 1);
  EXPECT_TRUE(store_->ListPages("z/", take).ok());
  EXPECT_EQ(pages, 1) << "no page is empty";
}

TEST_P(BlobStoreConformance, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"", "/a", "a//b", "../a", "a/..", "a/.hidden", "a b", "a/"}) {
    EXPECT_EQ(store_->Put(name, "").code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(store_->Get(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

// The stores that need no server, or the stores on a server: the latter below each test's own prefix, and once with
// every object put in parts.
std::vector<Implementation> Implementations() {
  static int opened = 0;
  const auto prefix = [] { return "conformance-" + std::to_string(++opened); };
  if (HasS3Server()) {
    return {{"S3", [prefix](const std::string&) { return OpenS3(prefix()); }},
            {"S3Parts", [prefix](const std::string&) { return OpenS3(prefix(), {.multipart_bytes = 0}); }}};
  }
  return {{"Memory", [](const std::string&) { return std::make_unique<MemoryBlobStore>(); }},
          {"File", [](const std::string& folder) -> std::unique_ptr<BlobStore> {
             return FileBlobStore::Open(RealFileSystem(), folder).value();
           }}};
}

INSTANTIATE_TEST_SUITE_P(All, BlobStoreConformance, ::testing::ValuesIn(Implementations()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace chainfleet
