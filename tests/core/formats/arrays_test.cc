#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/formats/csv.h"
#include "core/formats/gzip.h"
#include "core/formats/idx.h"
#include "core/formats/npy.h"
#include "core/formats/npz.h"
#include "core/formats/torch_script.h"
#include "core/formats/zip.h"

namespace chainfleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

Array Floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  Array array{.type = ArrayType::kFloat32, .shape = std::move(shape), .bytes = std::string(values.size() * 4, '\0')};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

TEST(Idx, ReadsSizesAndBytes) {
  const auto array =
      ReadIdx(std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
                          "abcdef",
                          18));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape, ElementsAre(2, 3));
  EXPECT_EQ(array->bytes, "abcdef");
}

TEST(Idx, RefusesCutTrailingAndForeignBytes) {
  EXPECT_THAT(Message(ReadIdx(std::string("\0\0\x08\x01\0\0\0\x03"
                                          "ab",
                                          10))
                          .status()),
              HasSubstr("promises 3 bytes of data, the file has 2"));
  EXPECT_FALSE(ReadIdx(std::string("\0\0\x08\x01\0\0\0\x01"
                                   "ab",
                                   10))
                   .ok());
  EXPECT_FALSE(ReadIdx("GIF89a").ok());
  EXPECT_FALSE(ReadIdx(std::string("\0\0\x0D\x01\0\0\0\x01"
                                   "abcd",
                                   12))
                   .ok())
      << "floats";
}

TEST(Idx, SizesWhoseProductOverflowsAreRefused) {
  EXPECT_FALSE(
      ReadIdx(std::string("\0\0\x08\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 20)).ok());
}

TEST(Npy, RoundTripsEveryType) {
  for (const ArrayType type :
       {ArrayType::kUint8, ArrayType::kInt32, ArrayType::kInt64, ArrayType::kFloat32, ArrayType::kFloat64}) {
    const Array array{
        .type = type, .shape = {2, 3}, .bytes = std::string(static_cast<size_t>(6 * ItemBytes(type)), 'x')};
    const std::string file = WriteNpy(array);
    EXPECT_EQ((file.size() - array.bytes.size()) % 64, 0u);
    const auto read = ReadNpy(file);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->type, type);
    EXPECT_EQ(read->shape, array.shape);
    EXPECT_EQ(read->bytes, array.bytes);
  }
}

TEST(Npy, RefusesWhatItCannotRead) {
  std::string fortran = WriteNpy(Floats({2, 1}, {1, 2}));
  fortran.replace(fortran.find("False"), 5, "True ");
  EXPECT_THAT(Message(ReadNpy(fortran).status()), HasSubstr("Fortran"));
  std::string half = WriteNpy(Floats({2, 1}, {1, 2}));
  half.replace(half.find("<f4"), 3, "<f2");
  EXPECT_THAT(Message(ReadNpy(half).status()), HasSubstr("<f2"));
  const std::string cut = WriteNpy(Floats({2, 1}, {1, 2}));
  EXPECT_THAT(Message(ReadNpy(cut.substr(0, cut.size() - 1)).status()), HasSubstr("promises 8 bytes"));
  EXPECT_FALSE(ReadNpy(cut.substr(0, 20)).ok());
  EXPECT_FALSE(ReadNpy("").ok());
  std::string endless("\x93NUMPY\x02\0\0\0\x10\0", 12);  // a header of 1 MiB
  endless += "{'descr': '" + std::string(1 << 20, 'x');
  EXPECT_THAT(Message(ReadNpy(endless).status()), HasSubstr("1048576 bytes, at most 4096"));
}

TEST(Npy, TextsAreOfNumPysTypeU) {
  const std::string file = WriteNpyOfTexts({"no", "\xc3\xa9\xf0\x9f\x98\x80!"});  // e acute, a grinning face, !
  EXPECT_THAT(file, HasSubstr("'descr': '<U3', 'fortran_order': False, 'shape': (2,), "));
  EXPECT_EQ(file.size() % 64, 6 * sizeof(char32_t));
  EXPECT_EQ(file.substr(file.size() - 24), std::string("n\0\0\0o\0\0\0\0\0\0\0\xe9\0\0\0\0\xf6\1\0!\0\0\0", 24));
  EXPECT_THAT(WriteNpyOfTexts({}), HasSubstr("'<U1', 'fortran_order': False, 'shape': (0,), "));
}

TEST(Npz, RoundTrips) {
  const auto bytes = WriteNpz({{"a", Floats({3}, {1, 2, 3})}, {"b", Floats({1, 2}, {4, 5})}});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto arrays = ReadNpz(*bytes);
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_THAT(arrays->at("b").shape, ElementsAre(1, 2));
  EXPECT_EQ(arrays->at("a").bytes, Floats({3}, {1, 2, 3}).bytes);
}

TEST(Npz, ReadsOnlyWhatIsAskedFor) {
  std::string bytes = *WriteNpz({{"x", Floats({1}, {3})}, {"z", Floats({1}, {1})}});
  bytes[bytes.find(std::string("\0\0\x80\x3f", 4))] ^= 1;  // a byte of z, which would be reported as damaged
  const auto arrays = ReadNpz(bytes, {"x", "y"});
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  EXPECT_EQ(arrays->size(), 1u);
  EXPECT_TRUE(arrays->contains("x"));
  EXPECT_FALSE(ReadNpz(bytes).ok());
}

TEST(Npz, BoundsWhatItReadsInAll) {
  const std::string bytes = *WriteNpz({{"a", Floats({3}, {1, 2, 3})}, {"b", Floats({1, 2}, {4, 5})}});
  constexpr int64_t kMembers = (64 + 64 + 12) + (64 + 64 + 8);  // headers of .npy are multiples of 64
  EXPECT_TRUE(ReadNpz(bytes, {}, kMembers).ok());
  const absl::Status over = ReadNpz(bytes, {}, kMembers - 1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(over)) << over;
  EXPECT_THAT(Message(over), HasSubstr("b.npy unpacks to 136 bytes, over the 135 that are left for it"));
  EXPECT_TRUE(ReadNpz(bytes, {"b"}, 136).ok());
}

TEST(Npz, RefusesWhatIsNoArchive) { EXPECT_FALSE(ReadNpz("PK not really").ok()); }

TEST(Zip, NamesADamagedMember) {
  std::string bytes = *WriteNpz({{"a", Floats({3}, {1, 2, 3})}});
  const size_t value = bytes.find(std::string("\0\0\x80\x3f", 4));  // 1.0f
  ASSERT_NE(value, std::string::npos);
  bytes[value] ^= 1;
  EXPECT_THAT(Message(ReadNpz(bytes).status()), HasSubstr("a.npy is damaged"));
}

TEST(Zip, UnpacksNothingOverTheLimit) {
  const std::string bytes = *WriteZip({{"a", "12345"}});
  const auto archive = ZipReader::Open(bytes, "zip");
  EXPECT_EQ(archive->Read("a", 5).value(), "12345");
  EXPECT_TRUE(absl::IsResourceExhausted(archive->Read("a", 4).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(archive->Read(size_t{0}, -1).status()));
  EXPECT_TRUE(absl::IsNotFound(archive->Read("b", 4).status()));
}

TEST(Zip, ChecksContentWithoutKeepingIt) {
  const std::string content(200'000, 'x');
  std::string bytes = *WriteZip({{"a", content}});
  EXPECT_TRUE(ZipReader::Open(bytes, "zip")->CheckContent(0, 200'000).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ZipReader::Open(bytes, "zip")->CheckContent(0, 199'999)));
  bytes[bytes.find(content) + 100'000] = 'y';
  EXPECT_THAT(Message(ZipReader::Open(bytes, "zip")->CheckContent(0, 200'000)), HasSubstr("a is damaged"));
}

TEST(TorchScript, RefusesArchivesWithoutTensorsOrCode) {
  EXPECT_THAT(Message(CheckTorchScript(*WriteNpz({{"a", Floats({1}, {1})}}))), HasSubstr("holds other members"));
  EXPECT_THAT(Message(CheckTorchScript("import os")), HasSubstr("not a .pt2 or TorchScript archive"));
  EXPECT_THAT(Message(CheckTorchScript("")), HasSubstr("not a .pt2 or TorchScript archive"));
}

// An archive with the members of a TorchScript file.
std::string ArchiveOf(const std::string& code, const char* member = "m/code/mm.py") {
  const auto bytes = [](const std::string& text) {
    return Array{.type = ArrayType::kUint8, .shape = {static_cast<int64_t>(text.size())}, .bytes = text};
  };
  std::string archive = *WriteNpz({{"m/data", bytes("-")}, {"m/code/m", bytes(code)}});
  // WriteNpz ends names with ".npy", so use names of the same length, which need no other sizes.
  for (const auto& [from, to] : {std::pair("m/data.npy", "m/data.pkl"), std::pair("m/code/m.npy", member)}) {
    for (size_t at = 0; (at = archive.find(from, at)) != std::string::npos;) archive.replace(at, std::strlen(to), to);
  }
  return archive;
}

TEST(TorchScript, RefusesCodeThatOpensFiles) {
  EXPECT_TRUE(CheckTorchScript(ArchiveOf("return torch.linear(x, self.saved)")).ok());
  EXPECT_TRUE(CheckTorchScript(ArchiveOf("return self.unsave(x, saves=2)")).ok());
  EXPECT_THAT(Message(CheckTorchScript(ArchiveOf("_0 = torch.save(x, \"f\")"))), HasSubstr("m/code/mm.py names save"));
  EXPECT_THAT(Message(CheckTorchScript(ArchiveOf("x.save \\\n (\"f\")"))), HasSubstr("names save"));
  EXPECT_THAT(Message(CheckTorchScript(ArchiveOf("torch.from_file(\"/etc/passwd\")"))), HasSubstr("names from_file"));
}

// LibTorch ignores the case of member names, and finds an operator under any alias.
TEST(TorchScript, RefusesCodeThatHidesWhatItOpens) {
  for (const char* code : {"f = torch.from_file\nx = f(\"f\")", "x = (torch.from_file #\n(\"f\"))", "torch.save # f"}) {
    EXPECT_THAT(Message(CheckTorchScript(ArchiveOf(code))), HasSubstr("opens files")) << code;
  }
  for (const char* member : {"m/CODE/mm.py", "m/code/mm.PY", "m/CoDe/mm.Py"}) {
    EXPECT_THAT(Message(CheckTorchScript(ArchiveOf("torch.save(x, \"f\")", member))), HasSubstr("opens files"))
        << member;
  }
}

TEST(Gzip, TellsCutDataApart) {
  // printf 'hello' | gzip -n
  const std::string hello("\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0", 25);
  EXPECT_EQ(Gunzip(hello).value(), "hello");
  EXPECT_EQ(Gunzip(hello + "x").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Gunzip(hello.substr(0, 14)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Csv, ReadsWithAndWithoutHeader) {
  EXPECT_THAT(ReadCsv("a,b\n1,2\n3,4\n")->columns, ElementsAre("a", "b"));
  EXPECT_THAT(ReadCsv("1, 2\r\n3,4")->values, ElementsAre(1, 2, 3, 4));
}

TEST(Csv, NamesLineAndColumnOfABadCell) {
  EXPECT_THAT(Message(ReadCsv("a,b\n1,2\n3,x\n").status()), HasSubstr("line 3, column b: \"x\""));
  EXPECT_THAT(Message(ReadCsv("a,b\n1,nan\n").status()), HasSubstr("line 2, column b"));
  EXPECT_THAT(Message(ReadCsv("1,2\n3\n").status()), HasSubstr("line 2 has 1 cells"));
  EXPECT_FALSE(ReadCsv("a,b\n").ok());
}

}  // namespace
}  // namespace chainfleet
