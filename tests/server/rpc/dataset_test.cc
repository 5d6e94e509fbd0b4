#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/formats/npy.h"
#include "core/store/draw_codec/safetensors.h"
#include "tests/server/rpc/running_server.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

struct File {
  std::string name, bytes;
};

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// `rows` images of 2 x 2 whose pixels and label count up.
File Images(uint32_t rows, uint8_t first = 0) {
  std::string bytes = BigEndian(0x803) + BigEndian(rows) + BigEndian(2) + BigEndian(2);
  for (uint32_t i = 0; i < rows * 4; ++i) bytes += static_cast<char>(first + i);
  return {"train-images-idx3-ubyte", bytes};
}
File LabelsOf(uint32_t rows) {
  std::string bytes = BigEndian(0x801) + BigEndian(rows);
  for (uint32_t i = 0; i < rows; ++i) bytes += static_cast<char>(i % 3);
  return {"train-labels-idx1-ubyte", bytes};
}

class DatasetTest : public RunningServer {
 protected:
  explicit DatasetTest(const TenantLimits& limits = {}, GivenTokens tokens = {})
      : RunningServer(std::move(tokens), true, 4096, limits) {}
  ~DatasetTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<v1::Dataset> Send(const std::vector<v1::PutDatasetRequest>& messages) {
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    v1::Dataset dataset;
    const auto writer = jobs_->PutDataset(&context, &dataset);
    for (const auto& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpc(status);
    return dataset;
  }
  static std::vector<v1::PutDatasetRequest> Messages(const std::string& name, const std::vector<File>& files) {
    std::vector<v1::PutDatasetRequest> messages(1);
    messages[0].mutable_header()->set_name(name);
    messages[0].mutable_header()->set_num_files(static_cast<int32_t>(files.size()));
    for (const File& file : files) {
      messages.emplace_back().mutable_file()->set_file_name(file.name);
      messages.back().mutable_file()->set_size_bytes(static_cast<int64_t>(file.bytes.size()));
      const size_t half = file.bytes.size() / 2;
      messages.emplace_back().set_data(file.bytes.substr(0, half));
      messages.emplace_back().set_data(file.bytes.substr(half));
    }
    return messages;
  }
  absl::StatusOr<v1::Dataset> Put(const std::string& name, const std::vector<File>& files) {
    return Send(Messages(name, files));
  }
  // Makes the test's folder a root with these files; returns their URIs.
  std::vector<std::string> Keep(const std::vector<File>& files) {
    std::filesystem::create_directories(folder_);
    dataset_roots_.AddFolder(folder_.string());
    std::vector<std::string> uris;
    for (const File& file : files) {
      std::ofstream(folder_ / file.name, std::ios::binary) << file.bytes;
      uris.push_back("file://" + (folder_ / file.name).string());
    }
    return uris;
  }
  // Puts all files by URI.
  static std::vector<v1::PutDatasetRequest> Named(const std::string& name, const std::vector<std::string>& uris) {
    std::vector<v1::PutDatasetRequest> messages(1);
    messages[0].mutable_header()->set_name(name);
    messages[0].mutable_header()->set_num_files(static_cast<int32_t>(uris.size()));
    for (const std::string& uri : uris) {
      messages.emplace_back().mutable_file()->set_file_name(uri.substr(uri.rfind('/') + 1));
      messages.back().mutable_file()->set_uri(uri);
    }
    return messages;
  }
  absl::Status Delete(const std::string& name) {
    v1::DeleteDatasetRequest request;
    request.set_name(name);
    return Call(*jobs_, &v1::JobService::Stub::DeleteDataset, request).status();
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("datasets-" + std::to_string(::getpid()));
};

class FullTenant : public DatasetTest {
 protected:
  FullTenant() : DatasetTest({.stored_bytes = 1000}) {}
};

TEST_F(FullTenant, PutsNoMoreBytesButTheSameAgain) {
  ASSERT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  const auto refused = Put("more", {Images(200), LabelsOf(200)});
  EXPECT_EQ(ReasonOf(refused.status()), "TENANT_LIMIT") << refused.status();
  EXPECT_TRUE(Put("more", {Images(6, 1), LabelsOf(6)}).ok()) << "there is room for a small one";
  for (int i = 0; Put("more-" + std::to_string(i), {Images(6, 2), LabelsOf(6)}).ok(); ++i) ASSERT_LT(i, 10);
  EXPECT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok()) << "it is there already";
}

TEST_F(FullTenant, AnUploadInFlightTakesTheRoomOfALaterOne) {
  absl::StatusOr<v1::Dataset> first;
  std::thread sender;
  {
    HeldStore held(state_.get());
    sender = std::thread([&] { first = Put("first", {Images(60), LabelsOf(60)}); });
    held.AwaitCall();
    EXPECT_EQ(BoundOf(Put("second", {Images(60), LabelsOf(60)}).status()), "tenant_stored_gib");
  }
  sender.join();
  EXPECT_TRUE(first.ok()) << first.status();
}

TEST_F(FullTenant, AnUploadThatFailsLeavesItsRoom) {
  state_->SetFull(true);
  EXPECT_EQ(ReasonOf(Put("first", {Images(60), LabelsOf(60)}).status()), "DISK_FULL");
  state_->SetFull(false);
  EXPECT_TRUE(Put("second", {Images(60), LabelsOf(60)}).ok());
}

TEST_F(DatasetTest, IsDecodedMeasuredAndListed) {
  const auto dataset = Put("digits", {Images(6), LabelsOf(6)});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->num_rows(), 6);
  EXPECT_EQ(dataset->num_classes(), 3);
  EXPECT_THAT(dataset->input_shape(), testing::ElementsAre(1, 2, 2));
  // Pixels 0..23: mean 11.5, variance (24^2 - 1) / 12.
  EXPECT_NEAR(dataset->normalisation().mean(0), 11.5 / 255, 1e-12);
  EXPECT_NEAR(dataset->normalisation().stddev(0), std::sqrt(575.0 / 12) / 255, 1e-12);
  v1::ListDatasetsRequest request;
  const auto list = Call(*jobs_, &v1::JobService::Stub::ListDatasets, request);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->datasets_size(), 1);
  EXPECT_EQ(list->datasets(0).digest(), dataset->digest());
}

TEST_F(DatasetTest, ShardsHoldTheBytesAsTheyCame) {
  ASSERT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  const auto dataset = content_.datasets().Get({}, "digits");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ(dataset->shards.size(), 1u);
  v1::GetBlobRequest request;
  request.mutable_blob()->set_name(dataset->shards[0].object.name);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto bytes = ReadAll(workers_->GetBlob(&context, request));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(static_cast<int64_t>(bytes->size()), dataset->shards[0].object.size_bytes);
  const auto file = ParseSafetensors(*bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(*bytes, HasSubstr(Images(6).bytes.substr(16)));
}

TEST_F(DatasetTest, RowsAreReadAsTheyCame) {
  ASSERT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  v1::ReadRowsRequest request;
  request.set_dataset("digits");
  request.add_rows(5);
  request.add_rows(1);
  const auto rows = Call(*jobs_, &v1::JobService::Stub::ReadRows, request);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->type(), v1::UINT8);
  EXPECT_THAT(rows->shape(), testing::ElementsAre(2, 1, 2, 2));
  EXPECT_THAT(rows->inputs(), testing::ElementsAre(20, 21, 22, 23, 4, 5, 6, 7));
  EXPECT_THAT(rows->labels(), testing::ElementsAre(2, 1));
  request.add_rows(6);
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::ReadRows, request).status().code(), absl::StatusCode::kOutOfRange);
  request.set_dataset("letters");
  const absl::Status unknown = Call(*jobs_, &v1::JobService::Stub::ReadRows, request).status();
  EXPECT_EQ(ReasonOf(unknown), "DATASET_NOT_FOUND");
}

TEST_F(DatasetTest, SameContentAgainIsOkAndOtherContentIsNot) {
  const auto first = Put("digits", {Images(6), LabelsOf(6)}), again = Put("digits", {Images(6), LabelsOf(6)});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->digest(), first->digest());
  EXPECT_EQ(Put("digits", {Images(6, 1), LabelsOf(6)}).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(DatasetTest, ACsvBecomesFloat32TargetsAndColumnsOfAScaleOfTheirOwn) {
  auto messages = Messages("houses", {{"houses.csv", "rooms,price,area\n1,2.5,100\n3,-4,300\n"}});
  messages[0].mutable_header()->set_target("price");
  EXPECT_THAT(std::string(Send(messages).status().message()),
              HasSubstr("houses.csv: label 2.5 of line 2, column price"));
  messages[0].mutable_header()->set_target_type(v1::FLOAT32_TARGETS);
  const auto put = Send(messages);
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->target_type(), v1::FLOAT32_TARGETS);
  EXPECT_EQ(put->num_classes(), 0);
  EXPECT_THAT(put->normalisation().mean(), testing::ElementsAre(2, 200));
  EXPECT_THAT(put->normalisation().stddev(), testing::ElementsAre(1, 100));
  v1::GetBlobRequest request;
  request.mutable_blob()->set_name(content_.datasets().Get({}, "houses")->shards[0].object.name);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto bytes = ReadAll(workers_->GetBlob(&context, request));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto file = ParseSafetensors(*bytes);
  const TensorView* targets = file->Find("targets");
  ASSERT_NE(targets, nullptr);
  EXPECT_EQ(file->Find("labels"), nullptr);
  float values[2];
  ASSERT_EQ(targets->size_bytes, 8);
  std::memcpy(values, targets->data, 8);
  EXPECT_THAT(values, testing::ElementsAre(2.5f, -4));
}

TEST_F(DatasetTest, WarnsOfChannelsThatComeLastAndOfClassesWithoutARow) {
  const auto put = [&](const std::string& name, const std::vector<int64_t>& shape, const std::string& labels) {
    const Array x{ArrayType::kUint8, shape,
                  std::string(static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]), 1)};
    const Array y{ArrayType::kUint8, {shape[0]}, labels};
    const auto stored = Put(name, {{"x.npy", WriteNpy(x)}, {"y.npy", WriteNpy(y)}});
    EXPECT_TRUE(stored.ok()) << stored.status();
    return std::vector<std::string>(stored->warnings().begin(), stored->warnings().end());
  };
  EXPECT_THAT(put("first", {2, 3, 8, 8}, std::string("\0\1", 2)), testing::IsEmpty());
  EXPECT_THAT(put("tiny", {2, 1, 1, 1}, std::string("\0\1", 2)), testing::IsEmpty());
  EXPECT_THAT(put("last", {2, 8, 8, 3}, std::string("\0\1", 2)),
              testing::ElementsAre(HasSubstr("[8, 8, 3] look like images whose channels come last")));
  EXPECT_THAT(
      put("gap", {3, 1, 2, 2}, std::string("\0\1\3", 3)),
      testing::ElementsAre("no row has label 2, but a network learns 4 classes: number them 0, 1, ... without gaps"));
  EXPECT_THAT(put("from-five", {2, 1, 2, 2}, "\5\6"),
              testing::ElementsAre(HasSubstr("5 of the labels, as 0, but a network learns 7 ")));
  EXPECT_THAT(put("gap", {3, 1, 2, 2}, std::string("\0\1\3", 3)), testing::SizeIs(1)) << "the same again";
}

TEST_F(DatasetTest, SaysWhichFileIsBroken) {
  File images = Images(6);
  images.bytes.resize(images.bytes.size() - 3);
  const auto cut = Put("digits", {images, LabelsOf(6)});
  EXPECT_EQ(cut.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr(images.name));
  EXPECT_EQ(Put("digits", {Images(6), LabelsOf(5)}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Put("digits", {{"notes.txt", "hello"}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Put("digits", {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Put("No Good", {Images(6), LabelsOf(6)}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(content_.datasets().Get({}, "digits").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DatasetTest, ByUriIsTheSameAsByUpload) {
  const auto uris = Keep({Images(6), LabelsOf(6)});
  const auto uploaded = Put("uploaded", {Images(6), LabelsOf(6)}), read = Send(Named("read", uris));
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->digest(), uploaded->digest());
  auto mixed = Named("mixed", {uris[0]});
  const auto labels = Messages("mixed", {LabelsOf(6)});
  mixed.insert(mixed.end(), labels.begin() + 1, labels.end());
  mixed[0].mutable_header()->set_num_files(2);
  const auto both = Send(mixed);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->digest(), uploaded->digest());
}

TEST_F(DatasetTest, ByUriIsRefusedWithoutARoot) {
  const absl::Status refused = Send(Named("digits", {"file:///etc/hostname"})).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(refused), "NO_DATASET_ROOT");
  EXPECT_EQ(content_.datasets().Get({}, "digits").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DatasetTest, ByUriThatIsRefusedStoresNothing) {
  const auto uris = Keep({Images(6), LabelsOf(6), {"bad.npy", "x"}});
  EXPECT_EQ(Send(Named("digits", {uris[0], "file:///etc/hostname"})).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Send(Named("digits", {uris[0] + ".gone"})).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Send(Named("digits", {"ftp://host/x"})).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::Status broken = Send(Named("digits", {uris[2], uris[1]})).status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(broken.message()), HasSubstr("bad.npy"));
  auto sized = Named("digits", uris);
  sized[1].mutable_file()->set_size_bytes(3);
  EXPECT_EQ(Send(sized).status().code(), absl::StatusCode::kInvalidArgument);
  auto followed = Named("digits", {uris[0], uris[1]});
  followed.emplace_back().set_data("x");
  EXPECT_EQ(Send(followed).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(content_.datasets().Get({}, "digits").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(blobs_.List("")->size(), 0u);
}

TEST_F(DatasetTest, ByUriIsBoundedInAll) {
  const auto uris = Keep({{"x.npy", ""}});
  std::filesystem::resize_file(folder_ / "x.npy", limits::kMaxDatasetUploadBytes);  // a hole: it takes no room
  auto messages = Messages("digits", {LabelsOf(6)});
  messages[0].mutable_header()->set_num_files(2);
  messages.push_back(Named("digits", uris)[1]);
  EXPECT_EQ(Send(messages).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(DatasetTest, MoreThanTheHeaderAnnouncesIsRefused) {
  auto more = Messages("digits", {Images(6), LabelsOf(6)});
  more[0].mutable_header()->set_num_files(1);
  EXPECT_THAT(std::string(Send(more).status().message()), HasSubstr("more files than the 1 that its header announces"));
  auto twice = Messages("digits", {Images(6), LabelsOf(6)});
  twice.insert(twice.begin() + 1, twice[0]);
  EXPECT_THAT(std::string(Send(twice).status().message()), HasSubstr("second header"));
  auto many = Messages("digits", {});
  many[0].mutable_header()->set_num_files(limits::kMaxDatasetFiles + 1);
  EXPECT_THAT(std::string(Send(many).status().message()), HasSubstr("announces 1001 files, at most 1000"));
  auto named = Messages("digits", {Images(6), LabelsOf(6)});
  named[1].mutable_file()->set_file_name(std::string(256, 'x'));
  EXPECT_THAT(std::string(Send(named).status().message()), HasSubstr("name of file 1 has 256 bytes, at most 255"));
  EXPECT_EQ(content_.datasets().Get({}, "digits").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DatasetTest, UploadsTogetherHoldNoMoreThanTheServerHasForThem) {
  {
    UploadShare others(&upload_budget_);
    ASSERT_TRUE(others.Add(limits::kMaxUploadsBytes - 60).ok());
    const absl::Status full = Put("digits", {Images(6), LabelsOf(6)}).status();
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(full), "UPLOADS_FULL");
    EXPECT_THAT(std::string(full.message()), HasSubstr("too little of the 4096 MiB for them"));
    EXPECT_EQ(ReasonOf(Send(Named("digits", Keep({Images(6), LabelsOf(6)}))).status()), "UPLOADS_FULL");
  }
  EXPECT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  while (upload_budget_.held_bytes() != 0) continue;  // released at the end of each call
}

// Blocks all reads by URI until released.
class HeldReads {
 public:
  explicit HeldReads(DatasetReads* reads) {
    EXPECT_TRUE(reads->Schedule("", [open = open_] { open->Get(); }).ok());
  }
  ~HeldReads() { open_->Take()(true); }

 private:
  const std::shared_ptr<Waited<bool>> open_ = std::make_shared<Waited<bool>>();
};

TEST_F(DatasetTest, ByUriIsRefusedWhenTooManyWait) {
  const auto uris = Keep({Images(6), LabelsOf(6)});
  {
    const HeldReads held(&dataset_reads_);
    for (int i = 0; i < limits::kWaitingDatasetReads; ++i) ASSERT_TRUE(dataset_reads_.Schedule("", [] {}).ok());
    const absl::Status refused = Send(Named("digits", uris)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(refused), "UPLOADS_FULL");
    EXPECT_THAT(std::string(refused.message()), HasSubstr("try again later"));
  }
  Waited<bool> done;
  while (!dataset_reads_.Schedule("", [take = done.Take()] { take(true); }).ok()) continue;
  done.Get();
  EXPECT_TRUE(Send(Named("digits", uris)).ok());
}

class DatasetOfATenant : public DatasetTest {
 protected:
  DatasetOfATenant() : DatasetTest({}, GivenTokens{{"secret", "vision"}}) { token_ = "secret"; }
};

TEST_F(DatasetOfATenant, ByUriIsRefusedWhenTooManyOfTheTenantWait) {
  const auto uris = Keep({Images(6), LabelsOf(6)});
  const HeldReads held(&dataset_reads_);
  for (int i = 0; i < limits::kWaitingDatasetReads / 2; ++i) {
    ASSERT_TRUE(dataset_reads_.Schedule("vision", [] {}).ok());
  }
  EXPECT_EQ(ReasonOf(Send(Named("digits", uris)).status()), "TENANT_LIMIT");
}

class DatasetsOfTwoTenants : public DatasetTest {
 protected:
  DatasetsOfTwoTenants() : DatasetTest({}, GivenTokens{{"vision", "vision"}, {"speech", "speech"}}) {}
};

// A tenant that guesses the content of another must not learn that it guessed right.
TEST_F(DatasetsOfTwoTenants, EqualContentIsStoredForEachOfThem) {
  const auto put = [&](const std::string& tenant) {
    token_ = tenant;
    const size_t before = blobs_.List("")->size();
    v1::Dataset dataset = Put("digits", {Images(6), LabelsOf(6)}).value();
    EXPECT_GT(blobs_.List("")->size(), before) << tenant << " stores objects of its own";
    EXPECT_EQ(Put("digits", {Images(6), LabelsOf(6)})->SerializeAsString(), dataset.SerializeAsString()) << tenant;
    dataset.clear_created_at();
    return dataset.SerializeAsString();
  };
  EXPECT_EQ(put("vision"), put("speech"));
  token_ = "vision";
  ASSERT_TRUE(Delete("digits").ok());
  token_ = "speech";
  const auto left = Call(*jobs_, &v1::JobService::Stub::ListDatasets, v1::ListDatasetsRequest());
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->datasets_size(), 1) << "another tenant's deletion takes nothing";
}

TEST_F(DatasetTest, ByUriIsNotReadForAClientThatHasGone) {
  const auto uris = Keep({Images(6), LabelsOf(6)});
  const std::string metrics = registry_.Serve("127.0.0.1:0").value();
  {
    const HeldReads held(&dataset_reads_);
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::Dataset dataset;
    const auto writer = jobs_->PutDataset(&context, &dataset);
    for (const auto& message : Named("digits", uris)) ASSERT_TRUE(writer->Write(message));
    writer->WritesDone();
    while (dataset_reads_.unfinished() < 2) continue;  // the blocking read, and this one
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
    while (Scrape(metrics).find("code=\"CANCELLED\"") == std::string::npos) continue;  // the server has noticed it, too
  }
  while (dataset_reads_.unfinished() > 0 || upload_budget_.held_bytes() > 0) continue;
  EXPECT_EQ(content_.datasets().Get({}, "digits").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(blobs_.List("")->size(), 0u);
}

TEST_F(DatasetTest, AnUploadThatBreaksOffStoresNothing) {
  auto messages = Messages("digits", {Images(6), LabelsOf(6)});
  messages.pop_back();
  EXPECT_EQ(Send(messages).status().code(), absl::StatusCode::kInvalidArgument);
  messages.resize(4);  // the images alone
  EXPECT_EQ(Send(messages).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Send({}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Send({v1::PutDatasetRequest()}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(content_.datasets().Get({}, "digits").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(blobs_.List("")->size(), 0u);
}

TEST_F(DatasetTest, PutAgainRepairsADamagedShardAndAMissingOne) {
  ASSERT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  const std::string shard = content_.datasets().Get({}, "digits")->shards[0].object.name;
  const std::string bytes = blobs_.Get(shard).value();
  ASSERT_TRUE(blobs_.Replace(shard, "damaged").ok());
  EXPECT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  EXPECT_TRUE(blobs_.Get(shard).value() == bytes);
  ASSERT_TRUE(blobs_.Delete(shard).ok());
  EXPECT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  EXPECT_TRUE(blobs_.Get(shard).value() == bytes);
  EXPECT_TRUE(state_->ListGarbage("", 10)->empty());
}

TEST_F(DatasetTest, ADataSetPutAgainAfterItsDeletionSurvivesALateCollector) {
  ASSERT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  const std::string digest = content_.datasets().Get({}, "digits")->digest;
  ASSERT_TRUE(Delete("digits").ok());
  const std::vector<std::string> listed = state_->ListGarbage("", 10).value();
  ASSERT_FALSE(listed.empty());
  ASSERT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  EXPECT_EQ(content_.datasets().Get({}, "digits")->digest, digest);
  for (const std::string& object : listed) ASSERT_TRUE(blobs_.Delete(object).ok());
  EXPECT_TRUE(blobs_.Get(content_.datasets().Get({}, "digits")->shards[0].object.name).ok());
}

TEST_F(DatasetTest, IsNotDeletedWhileAJobUsesIt) {
  ASSERT_TRUE(Put("digits", {Images(6), LabelsOf(6)}).ok());
  v1::JobSpec spec = GaussianJob("softmax");
  spec.mutable_model()->set_builtin("softmax_regression");
  spec.mutable_dataset()->set_name("digits");
  spec.mutable_prior()->mutable_gaussian()->set_precision(1);
  spec.set_batch_size(2);
  const auto job = CreateJob(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->report().num_examples(), 6);
  EXPECT_NEAR(job->report().learning_rate(), 0.6, 1e-12);
  const absl::Status refused = Delete("digits");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(refused), "IN_USE");
  EXPECT_THAT(std::string(refused.message()), HasSubstr(job->id()));
  ASSERT_TRUE(SetIntent("softmax", v1::Job::DELETE).ok());
  EXPECT_TRUE(Delete("digits").ok());
  EXPECT_EQ(Delete("digits").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace chainfleet
