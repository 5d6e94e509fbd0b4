#include "server/control/incarnation_listing.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/store/draw_codec/object_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace chainfleet {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr char kDigest[] = "abababababababababababababababababababababababababababababababab";

// Returns the given pages for every prefix; has no objects.
class ScriptedPages final : public BlobStore {
 public:
  std::vector<std::vector<std::string>> pages;

  absl::Status Put(const std::string&, const ByteSource&) override { return Nothing(); }
  absl::Status Replace(const std::string&, const ByteSource&) override { return Nothing(); }
  absl::StatusOr<std::string> Get(const std::string&) const override { return Nothing(); }
  absl::StatusOr<std::string> GetRange(const std::string&, int64_t, int64_t) const override { return Nothing(); }
  absl::StatusOr<int64_t> SizeBytes(const std::string&) const override { return Nothing(); }
  absl::StatusOr<std::vector<std::string>> List(const std::string&) const override { return Nothing(); }
  absl::Status ListPages(const std::string& prefix, const PageVisitor& visit) const override {
    EXPECT_EQ(prefix, "s1/");
    for (const std::vector<std::string>& page : pages) CHAINFLEET_RETURN_IF_ERROR(visit(page));
    return end;
  }
  absl::Status Delete(const std::string&) override { return Nothing(); }

  absl::Status end;

 private:
  static absl::Status Nothing() { return absl::UnimplementedError("not listed"); }
};

class IncarnationListing : public testing::Test {
 protected:
  absl::Status Visit() {
    return VisitIncarnation(blobs_, "s1",
                            {.chain =
                                 [this](const ChainId& chain, const std::set<std::string>& objects) {
                                   chains_.emplace_back(chain, objects);
                                   return refusal_;
                                 },
                             .content =
                                 [this](const std::vector<std::string>& objects) {
                                   content_.insert(content_.end(), objects.begin(), objects.end());
                                   return absl::OkStatus();
                                 }});
  }

  const ChainId one_{"job-aaaaaa", 1}, ten_{"job-aaaaaa", 10}, other_{"job-aaaaab", 1};
  const std::string a_ = ResumeObjectName("s1", one_, 1, kDigest), b_ = ResumeObjectName("s1", one_, 2, kDigest),
                    c_ = SegmentObjectName("s1", one_, 1, kDigest), d_ = SegmentObjectName("s1", ten_, 1, kDigest),
                    e_ = SegmentObjectName("s1", other_, 1, kDigest);
  ScriptedPages blobs_;
  absl::Status refusal_;
  std::vector<std::pair<ChainId, std::set<std::string>>> chains_;
  std::vector<std::string> content_;
};

TEST_F(IncarnationListing, JoinsEachChainAcrossPages) {
  const std::string shard = DatasetObjectName("s1", kDigest, 1), model = ModelObjectName("s1", kDigest, 2);
  const std::vector<std::string> all = {shard, a_, b_, c_, d_, e_, "s1/job-aaaaab/1/turned-away", model, "s1/notes"};
  for (size_t page = 1; page <= all.size(); ++page) {
    blobs_.pages.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % page == 0) blobs_.pages.emplace_back();
      blobs_.pages.back().push_back(all[i]);
    }
    chains_.clear();
    content_.clear();
    ASSERT_TRUE(Visit().ok());
    EXPECT_THAT(chains_, ElementsAre(Pair(one_, ElementsAre(a_, b_, c_)), Pair(ten_, ElementsAre(d_)),
                                     Pair(other_, ElementsAre(e_, "s1/job-aaaaab/1/turned-away"))))
        << page << " to a page";
    EXPECT_THAT(content_, ElementsAre(shard, model));
  }
}

TEST_F(IncarnationListing, NeitherHalfAListNorARefusalIsTheEnd) {
  blobs_.pages = {{a_, d_}};
  blobs_.end = absl::UnavailableError("cut");
  EXPECT_TRUE(absl::IsUnavailable(Visit()));
  EXPECT_EQ(chains_.size(), 1u) << "of the last one there may be more";
  refusal_ = absl::AbortedError("enough");
  EXPECT_TRUE(absl::IsAborted(Visit()));
  EXPECT_EQ(chains_.size(), 2u);
}

}  // namespace
}  // namespace chainfleet
