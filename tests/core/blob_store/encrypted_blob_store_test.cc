#include "core/store/blob_store/encrypted_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/store/draw_codec/object_names.h"
#include "core/store/draw_codec/sha256.h"
#include "tests/support/memory_blob_store.h"

namespace chainfleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kFirst(64, '1'), kSecond(64, '2'), kVision(64, '3');

std::string NameOf(const std::string& job, const std::string& content) {
  return SegmentObjectName("s1", {job, 0}, 1, Sha256Hex(content));
}

// A tenant's jobs begin with its name.
std::string TenantOf(const std::string& job) { return job.substr(0, job.find('-')); }

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

class EncryptedBlobStoreTest : public ::testing::Test {
 protected:
  EncryptedBlobStore Open(const std::string& keys) { return {stored_, *ObjectKeys::Parse(keys), TenantOf}; }
  std::string Stored(const std::string& name) const { return *stored_->Get(name); }
  void Store(const std::string& name, const std::string& bytes) { ASSERT_TRUE(stored_->Replace(name, bytes).ok()); }

  const std::shared_ptr<MemoryBlobStore> stored_ = std::make_shared<MemoryBlobStore>();
  const std::string all_ = "first " + kFirst + "\n";
};

TEST_F(EncryptedBlobStoreTest, AnyRangeOfAnySizeIsRead) {
  EncryptedBlobStore store = Open(all_);
  const int64_t part = 64 << 10;
  for (const int64_t size : {int64_t{0}, int64_t{1}, part - 1, part, part + 1, 3 * part, 3 * part + 7}) {
    const std::string content = Pattern(size), name = NameOf("lab-1", content);
    ASSERT_TRUE(store.Put(name, content).ok());
    EXPECT_EQ(*store.SizeBytes(name), size);
    EXPECT_EQ(*store.Get(name), content);
    if (size > 1) {
      EXPECT_THAT(Stored(name), Not(HasSubstr(content.substr(0, std::min<int64_t>(size, 16)))));
    }
    for (const int64_t offset : {int64_t{0}, int64_t{1}, part - 1, part, 2 * part + 5, size}) {
      for (const int64_t length : {int64_t{1}, part, part + 1, 4 * part}) {
        const std::string expected = offset > size ? "" : content.substr(offset, length);
        EXPECT_EQ(*store.GetRange(name, offset, length), expected) << size << " " << offset << " " << length;
      }
    }
  }
}

TEST_F(EncryptedBlobStoreTest, TheSameContentAgainIsFineAndAnotherIsNot) {
  EncryptedBlobStore store = Open(all_);
  const std::string name = NameOf("lab-1", "draws");
  ASSERT_TRUE(store.Put(name, std::string("draws")).ok());
  const std::string before = Stored(name);
  EXPECT_TRUE(store.Put(name, std::string("draws")).ok());
  EXPECT_EQ(Stored(name), before);
  EXPECT_TRUE(absl::IsAlreadyExists(store.Put(name, std::string("drawn"))));
  EXPECT_TRUE(store.Replace(name, std::string("drawn")).ok());
  EXPECT_EQ(*store.GetRange(name, 0, 9), "drawn");
}

TEST_F(EncryptedBlobStoreTest, OnlyObjectsOfChainsAreEncrypted) {
  EncryptedBlobStore store = Open(all_);
  const std::string name = DatasetObjectName("s1", Sha256Hex("rows"), 7);
  ASSERT_TRUE(store.Put(name, std::string("rows")).ok());
  EXPECT_EQ(Stored(name), "rows");
  EXPECT_EQ(*store.Get(name), "rows");
}

TEST_F(EncryptedBlobStoreTest, ObjectsInClearAreReadAsTheyAre) {
  const std::string name = NameOf("lab-1", "old draws");
  ASSERT_TRUE(Open("").Put(name, std::string("old draws")).ok());
  EXPECT_EQ(Stored(name), "old draws");
  EncryptedBlobStore store = Open(all_);
  EXPECT_EQ(*store.Get(name), "old draws");
  EXPECT_EQ(*store.GetRange(name, 4, 2), "dr");
  EXPECT_EQ(*store.SizeBytes(name), 9);
  EXPECT_TRUE(store.Put(name, std::string("old draws")).ok());
}

TEST_F(EncryptedBlobStoreTest, WithoutTheKeyAnObjectIsRefusedAndNotTakenForDamaged) {
  const std::string name = NameOf("lab-1", "draws");
  ASSERT_TRUE(Open(all_).Put(name, std::string("draws")).ok());
  for (const std::string& keys : {std::string(), "other " + kSecond}) {
    EncryptedBlobStore store = Open(keys);
    for (const absl::Status& status : {store.Get(name).status(), store.GetRange(name, 0, 5).status()}) {
      EXPECT_EQ(ReasonOf(status), "NO_DRAW_KEY") << status;
      EXPECT_THAT(status.message(), HasSubstr("the key first"));
    }
  }
  EXPECT_EQ(ReasonOf(Open("first " + kSecond).Get(name).status()), "DIGEST_MISMATCH");
}

TEST_F(EncryptedBlobStoreTest, EachTenantHasAKeyOfItsOwn) {
  EncryptedBlobStore store = Open(all_ + "eyes " + kVision + " vision\n");
  const std::string lab = NameOf("lab-1", "draws"), vision = NameOf("vision-1", "draws");
  ASSERT_TRUE(store.Put(lab, std::string("draws")).ok());
  ASSERT_TRUE(store.Put(vision, std::string("draws")).ok());
  EXPECT_EQ(ReasonOf(Open(all_).Get(vision).status()), "NO_DRAW_KEY");
  EXPECT_EQ(*Open(all_).Get(lab), "draws");
  EXPECT_EQ(ReasonOf(Open("eyes " + kVision + " vision\n").Put(lab, std::string("draws"))), "NO_DRAW_KEY");
  // The tenant in the head is part of what derives the key.
  std::string moved = Stored(lab);
  moved.replace(moved.find("lab"), 3, "bal");
  Store(lab, moved);
  EXPECT_EQ(ReasonOf(Open(all_).Get(lab).status()), "DIGEST_MISMATCH");
}

TEST_F(EncryptedBlobStoreTest, ChangedCutAndMovedBytesAreFound) {
  const std::string content = Pattern(3 * (64 << 10) + 5), name = NameOf("lab-1", content);
  ASSERT_TRUE(Open(all_).Put(name, content).ok());
  const std::string stored = Stored(name);
  const size_t part = (64 << 10) + 16, head = kEncryptedHeadBytes;
  std::vector<std::string> changed;
  for (const size_t at : {size_t{9}, size_t{100}, head - 1, head, head + part, stored.size() - 1}) {
    changed.push_back(stored);
    changed.back()[at] ^= 1;
  }
  for (const size_t size : {head - 1, head, head + 15, head + part, head + 3 * part, stored.size() - 1}) {
    changed.push_back(stored.substr(0, size));
  }
  changed.push_back(stored.substr(0, head) + stored.substr(head + part, part) + stored.substr(head, part) +
                    stored.substr(head + 2 * part));
  changed.push_back(stored + stored.substr(head, part));
  for (const std::string& bytes : changed) {
    Store(name, bytes);
    const absl::Status status = Open(all_).Get(name).status();
    EXPECT_TRUE(ReasonOf(status) == "DIGEST_MISMATCH" || ReasonOf(status) == "NO_DRAW_KEY") << status;
  }
  const std::string other = NameOf("lab-2", content);
  Store(name, stored);
  Store(other, stored);
  EXPECT_EQ(ReasonOf(Open(all_).Get(other).status()), "DIGEST_MISMATCH") << "no object takes another's place";
}

TEST_F(EncryptedBlobStoreTest, RenewEncryptsUnderThePresentKey) {
  const std::string clear = NameOf("lab-1", "in clear"), old = NameOf("lab-2", "old");
  ASSERT_TRUE(Open("").Put(clear, std::string("in clear")).ok());
  ASSERT_TRUE(Open(all_).Put(old, std::string("old")).ok());
  EncryptedBlobStore store = Open("second " + kSecond + "\n" + all_);
  EXPECT_EQ(*store.GetRange(old, 0, 3), "old") << "before";
  EXPECT_TRUE(*store.Renew(clear));
  EXPECT_TRUE(*store.Renew(old));
  EXPECT_FALSE(*store.Renew(old));
  EXPECT_FALSE(*store.Renew(DatasetObjectName("s1", Sha256Hex("rows"), 7)));
  EncryptedBlobStore without_first = Open("second " + kSecond);
  EXPECT_EQ(*without_first.Get(clear), "in clear");
  EXPECT_EQ(*without_first.Get(old), "old");
  EXPECT_EQ(*store.GetRange(old, 0, 3), "old") << "afterwards";
}

TEST_F(EncryptedBlobStoreTest, RenewChangesTheKeyOfNoTenantForThatOfTheTenant) {
  const std::string name = NameOf("lab-1", "restored");
  EncryptedBlobStore restoring(stored_, *ObjectKeys::Parse(all_), [](const std::string&) { return ""; });
  ASSERT_TRUE(restoring.Put(name, std::string("restored")).ok());
  EncryptedBlobStore store = Open(all_);
  EXPECT_TRUE(*store.Renew(name));
  EXPECT_FALSE(*store.Renew(name));
  EXPECT_EQ(*store.Get(name), "restored");
}

TEST_F(EncryptedBlobStoreTest, ANewLineEncryptsAndARemovedLineReadsNoMore) {
  std::string lines = all_;
  EncryptedBlobStore store(stored_, *Reread<ObjectKeys>::Open("keys", [&] { return ObjectKeys::Parse(lines); }),
                           TenantOf);
  const std::string old = NameOf("lab-1", "old"), fresh = NameOf("lab-1", "fresh");
  ASSERT_TRUE(store.Put(old, std::string("old")).ok());
  lines = "second " + kSecond + "\n" + all_;
  ASSERT_TRUE(store.Put(fresh, std::string("fresh")).ok());
  EXPECT_EQ(*store.Get(old), "old");
  EXPECT_EQ(*Open("second " + kSecond).Get(fresh), "fresh");
  lines = "second " + kSecond;
  EXPECT_EQ(*store.Get(fresh), "fresh");
  EXPECT_EQ(ReasonOf(store.Get(old).status()), "NO_DRAW_KEY");
  lines = "";
  EXPECT_TRUE(store.Put(NameOf("lab-1", "later"), std::string("later")).ok());
  EXPECT_NE(Stored(NameOf("lab-1", "later")), "later") << "without keys, the former ones encrypt";
}

TEST_F(EncryptedBlobStoreTest, OnlyObjectsOfChainsNeedTheKeys) {
  int readings = 0;
  const auto read = [&] {
    ++readings;
    return ObjectKeys::Parse(all_);
  };
  EncryptedBlobStore store(stored_, *Reread<ObjectKeys>::Open("keys", read), TenantOf);
  const int before = readings;
  const std::string other = "datasets/" + Sha256Hex("rows");
  ASSERT_TRUE(store.Put(other, std::string("rows")).ok());
  EXPECT_EQ(*store.GetRange(other, 0, 4), "rows");
  EXPECT_EQ(*store.SizeBytes(other), 4);
  EXPECT_EQ(readings, before);
  ASSERT_TRUE(store.Put(NameOf("lab-1", "draws"), std::string("draws")).ok());
  EXPECT_EQ(readings, before + 1);
}

TEST(ObjectKeys, LinesThatAreNoKeysAreRefusedWithoutShowingThem) {
  EXPECT_TRUE(ObjectKeys::Parse("# none\n\n")->empty());
  for (const std::string& line :
       std::vector<std::string>{"first", "first " + kFirst.substr(1), "first " + kFirst + "x", "First " + kFirst,
                                "first " + kFirst + " a b", "first " + kFirst + " No", kFirst + " first",
                                "first " + kFirst + " " + kFirst, "first " + kFirst + "\nfirst " + kSecond}) {
    const absl::Status status = ObjectKeys::Parse(line).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line;
    EXPECT_THAT(status.message(), HasSubstr("line "));
    EXPECT_THAT(status.message(), Not(HasSubstr(kFirst.substr(1))));
  }
}

}  // namespace
}  // namespace chainfleet
