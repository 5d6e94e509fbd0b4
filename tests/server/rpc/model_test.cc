// Files of networks over the wire. The TorchScript archives are made by hand: nothing on the server runs them.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/store/draw_codec/safetensors.h"
#include "tests/server/rpc/running_server.h"
#include "tests/server/rpc/torch_script_archive.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

class ModelTest : public RunningServer {
 protected:
  explicit ModelTest(bool allow_modules = true, GivenTokens tokens = {}, const TenantLimits& limits = {})
      : RunningServer(std::move(tokens), allow_modules, 4096, limits) {}
  absl::StatusOr<v1::StoredModel> Put(const std::string& name, const std::string& bytes, int64_t announced = -1) {
    std::vector<v1::PutModelRequest> messages(2);
    messages[0].mutable_header()->set_name(name);
    messages[0].mutable_header()->set_size_bytes(announced < 0 ? std::ssize(bytes) : announced);
    messages[1].set_data(bytes);
    return Send(messages);
  }
  absl::StatusOr<v1::StoredModel> PutUri(const std::string& name, const std::string& uri, int64_t announced = 0) {
    std::vector<v1::PutModelRequest> messages(1);
    messages[0].mutable_header()->set_name(name);
    messages[0].mutable_header()->set_uri(uri);
    messages[0].mutable_header()->set_size_bytes(announced);
    return Send(messages);
  }
  absl::StatusOr<v1::StoredModel> Send(const std::vector<v1::PutModelRequest>& messages) {
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    v1::StoredModel model;
    const auto writer = jobs_->PutModel(&context, &model);
    for (const v1::PutModelRequest& message : messages) writer->Write(message);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpc(status);
    return model;
  }
  absl::Status Delete(const std::string& name) {
    v1::DeleteModelRequest request;
    request.set_name(name);
    return Call(*jobs_, &v1::JobService::Stub::DeleteModel, request).status();
  }
  std::vector<std::string> Names() {
    const auto list = Call(*jobs_, &v1::JobService::Stub::ListModels, v1::ListModelsRequest());
    EXPECT_TRUE(list.ok()) << list.status();
    std::vector<std::string> names;
    for (const v1::StoredModel& model : list->models()) names.push_back(model.name());
    return names;
  }
};

TEST_F(ModelTest, IsStoredByItsContentListedAndReadByWorkers) {
  const std::string mine = TorchScriptArchive(1), yours = TorchScriptArchive(2);  // an archive tells when it was made
  const auto model = Put("mine", mine);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(Put("mine", mine).ok()) << "the same again";
  EXPECT_EQ(Put("mine", yours).status().code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(Put("yours", yours).ok());
  EXPECT_THAT(Names(), testing::ElementsAre("mine", "yours"));
  v1::GetBlobRequest request;
  *request.mutable_blob() = model->object();
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto bytes = ReadAll(workers_->GetBlob(&context, request));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, mine);
}

class ModulesOff : public ModelTest {
 protected:
  ModulesOff() : ModelTest(false) {}
};

// A module is a program: a server that was not told to take any neither stores nor samples one.
TEST_F(ModulesOff, ATorchScriptFileIsNeitherStoredNorSampled) {
  EXPECT_EQ(ReasonOf(Put("mine", TorchScriptArchive(1)).status()), "MODULES_OFF");
  v1::JobSpec spec = SoftmaxJob("scripted");
  spec.mutable_model()->set_torchscript("mine");
  EXPECT_EQ(ReasonOf(CreateJob(spec).status()), "MODULES_OFF");
}

// It is no program.
TEST_F(ModulesOff, APt2FileIsStoredWithWhatItSaysOfItsNetwork) {
  std::ifstream in(std::string(CHAINFLEET_DATA) + "/exported/mlp.pt2", std::ios::binary);
  std::string file(std::istreambuf_iterator<char>(in), {});
  const auto model = Put("mlp", file);
  ASSERT_TRUE(model.ok()) << model.status();
  const v1::NetworkSignature& network = model->signature();
  ASSERT_EQ(network.inputs_size(), 1);
  EXPECT_EQ(network.inputs(0).type(), "float32");
  EXPECT_THAT(network.inputs(0).shape(), testing::ElementsAre(6));
  EXPECT_THAT(network.output().shape(), testing::ElementsAre(3));
  ASSERT_EQ(network.parameters_size(), 6);
  EXPECT_EQ(network.parameters(0).name(), "0.weight");
  file[file.find("torch.ops.aten.linear") + 11] = 'x';
  EXPECT_THAT(std::string(Put("other", file).status().message()), HasSubstr("model other: "));
  EXPECT_THAT(Names(), testing::ElementsAre("mlp"));
}

TEST_F(ModulesOff, APt2FileSaysWhatTrains) {
  std::ifstream in(std::string(CHAINFLEET_DATA) + "/exported/train_norm.pt2", std::ios::binary);
  const auto model = Put("norm", std::string(std::istreambuf_iterator<char>(in), {}));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->signature().has_dropout());
  ASSERT_EQ(model->signature().statistics_size(), 4);
  EXPECT_EQ(model->signature().statistics(3).name(), "6.running_var");
  EXPECT_THAT(model->signature().statistics(3).shape(), testing::ElementsAre(12));
}

// Nor are weights.
TEST_F(ModulesOff, AFileOfWeightsIsStoredWithItsTensors) {
  const float values[] = {1, 2};
  const std::string file =
      WriteSafetensors({{"0.bias", TensorType::kFloat32, {2}, reinterpret_cast<const char*>(values), 8}}, {});
  const auto model = Put("map", file);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->signature().inputs_size(), 0);
  ASSERT_EQ(model->signature().parameters_size(), 1);
  EXPECT_EQ(model->signature().parameters(0).type(), "float32");
  EXPECT_THAT(std::string(Put("cut", file.substr(0, file.size() - 1)).status().message()),
              HasSubstr("model cut: not a valid safetensors file"));
  EXPECT_THAT(Names(), testing::ElementsAre("map"));
}

class TenantWithRoomForOne : public ModelTest {
 protected:
  TenantWithRoomForOne() : ModelTest(true, {}, {.stored_bytes = 1000}) {}
  absl::StatusOr<v1::StoredModel> PutWeights(const std::string& name) {
    const std::vector<float> values(150);
    return Put(name,
               WriteSafetensors(
                   {{"bias", TensorType::kFloat32, {150}, reinterpret_cast<const char*>(values.data()), 600}}, {}));
  }
};

TEST_F(TenantWithRoomForOne, AModelInFlightTakesTheRoomOfALaterOne) {
  absl::StatusOr<v1::StoredModel> first;
  std::thread sender;
  {
    HeldStore held(state_.get());
    sender = std::thread([&] { first = PutWeights("first"); });
    held.AwaitCall();
    EXPECT_EQ(BoundOf(PutWeights("second").status()), "tenant_stored_gib");
  }
  sender.join();
  EXPECT_TRUE(first.ok()) << first.status();
}

TEST_F(TenantWithRoomForOne, AModelThatIsNotStoredLeavesItsRoom) {
  state_->SetFull(true);
  EXPECT_EQ(ReasonOf(PutWeights("first").status()), "DISK_FULL");
  state_->SetFull(false);
  EXPECT_TRUE(PutWeights("second").ok());
}

class WriterWithoutModels : public ModelTest {
 protected:
  WriterWithoutModels() : ModelTest(true, GivenTokens{{"secret", "vision"}}) { token_ = "secret"; }
};

TEST_F(WriterWithoutModels, StoresNoTorchScript) {
  EXPECT_EQ(ReasonOf(Put("mine", TorchScriptArchive(1)).status()), "NOT_ALLOWED");
}

TEST_F(WriterWithoutModels, ReadsNothingByUriWhenTooManyOfTheTenantWait) {
  dataset_roots_.AddFolder(testing::TempDir());
  const auto open = std::make_shared<Waited<bool>>();
  for (int i = 0; i < limits::kWaitingDatasetReads / 2; ++i) {
    ASSERT_TRUE(dataset_reads_.Schedule("vision", [open] { open->Get(); }).ok());
  }
  EXPECT_EQ(ReasonOf(PutUri("mine", "file://" + testing::TempDir() + "net.pt2").status()), "TENANT_LIMIT");
  open->Take()(true);
}

class ModelsOfTwoTenants : public ModelTest {
 protected:
  ModelsOfTwoTenants() : ModelTest(true, GivenTokens{{"vision", "vision"}, {"speech", "speech"}}) {}
};

// A tenant that guesses the content of another must not learn that it guessed right.
TEST_F(ModelsOfTwoTenants, EqualContentIsStoredForEachOfThem) {
  const float values[] = {1, 2};
  const std::string file =
      WriteSafetensors({{"0.bias", TensorType::kFloat32, {2}, reinterpret_cast<const char*>(values), 8}}, {});
  std::vector<std::string> objects;
  const auto put = [&](const std::string& tenant) {
    token_ = tenant;
    v1::StoredModel model = Put("map", file).value();
    EXPECT_EQ(Put("map", file)->SerializeAsString(), model.SerializeAsString()) << tenant;
    objects.push_back(model.object().name());
    model.clear_created_at();
    model.mutable_object()->clear_name();  // has a random part
    return model.SerializeAsString();
  };
  EXPECT_EQ(put("vision"), put("speech"));
  EXPECT_NE(objects[0], objects[1]);
  EXPECT_EQ(objects[0].size(), objects[1].size());
  token_ = "vision";
  ASSERT_TRUE(Delete("map").ok());
  token_ = "speech";
  EXPECT_THAT(Names(), testing::ElementsAre("map")) << "another tenant's deletion takes nothing";
}

TEST_F(ModelTest, ByUriIsTheFileBelowTheRoot) {
  const std::string folder = testing::TempDir() + "models-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const std::string archive = TorchScriptArchive(1);  // tells when it was made
  std::ofstream(folder + "/net.pt", std::ios::binary) << archive;
  const std::string uri = "file://" + folder + "/net.pt";
  EXPECT_EQ(ReasonOf(PutUri("mine", uri).status()), "NO_DATASET_ROOT");
  dataset_roots_.AddFolder(folder);
  const auto model = PutUri("mine", uri);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->object().sha256(), Put("mine", archive)->object().sha256());
  EXPECT_EQ(PutUri("yours", "file:///etc/hostname").status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(PutUri("yours", uri + ".gone").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(PutUri("yours", uri, 7).status().code(), absl::StatusCode::kInvalidArgument) << "no data may follow";
  std::filesystem::remove_all(folder);
}

TEST_F(ModelTest, WaitsForOtherUploads) {
  {
    UploadShare others(&upload_budget_);
    ASSERT_TRUE(others.Add(limits::kMaxUploadsBytes - 1).ok());
    EXPECT_EQ(ReasonOf(Put("mine", TorchScriptArchive(1)).status()), "UPLOADS_FULL");
  }
  EXPECT_TRUE(Put("mine", TorchScriptArchive(1)).ok());
  std::ifstream in(std::string(CHAINFLEET_DATA) + "/exported/mlp.pt2", std::ios::binary);
  const std::string network(std::istreambuf_iterator<char>(in), {});
  {
    UploadShare others(&upload_budget_);
    ASSERT_TRUE(others.Add(limits::kMaxUploadsBytes - 2 * std::ssize(network)).ok());
    EXPECT_EQ(ReasonOf(Put("yours", network).status()), "UPLOADS_FULL") << "its description takes memory, too";
  }
  EXPECT_TRUE(Put("yours", network).ok());
}

TEST_F(ModelTest, RefusesWhatIsNoModule) {
  EXPECT_THAT(std::string(Put("mine", "import os").status().message()),
              HasSubstr("model mine: not a .pt2 or TorchScript"));
  std::string damaged = TorchScriptArchive(1);
  damaged.resize(damaged.size() / 2);
  EXPECT_EQ(Put("mine", damaged).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Put("mine", TorchScriptArchive(1), 1'000'000).status().message()), HasSubstr("broke off"));
  EXPECT_THAT(std::string(Put("mine", TorchScriptArchive(1), 10).status().message()), HasSubstr("more bytes"));
  EXPECT_EQ(Put("mine", TorchScriptArchive(1), int64_t{1} << 40).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Put("No Good", TorchScriptArchive(1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Names(), testing::IsEmpty());
}

TEST_F(ModelTest, AJobNeedsOneThatIsThereAndHoldsIt) {
  v1::JobSpec spec;
  spec.set_name("scripted");
  spec.mutable_model()->set_torchscript("mine");
  spec.mutable_dataset()->set_name("digits");
  spec.mutable_sampler()->mutable_sgld();
  spec.mutable_step_size()->set_constant(1e-3);
  spec.set_num_steps(10);
  spec.set_batch_size(10);
  Dataset dataset{.name = "digits", .input_shape = {1, 2, 2}, .num_rows = 100, .targets = Classes{10}};
  Waited<absl::StatusOr<std::string>> upload;
  content_.BeginUpload({}, upload.Take());
  Waited<absl::StatusOr<Dataset>> put;
  content_.Put(dataset, **upload.Get(), put.Take());
  ASSERT_TRUE((*put.Get()).ok());
  const auto without = CreateJob(spec);
  EXPECT_EQ(ReasonOf(without.status()), "MODEL_NOT_FOUND") << without.status();
  ASSERT_TRUE(Put("mine", TorchScriptArchive(1)).ok());
  const auto job = CreateJob(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec().model().torchscript(), "mine");
  EXPECT_EQ(ReasonOf(Delete("mine")), "IN_USE");
  ASSERT_TRUE(SetIntent(job->id(), v1::Job::DELETE).ok());
  EXPECT_TRUE(Delete("mine").ok());
  EXPECT_THAT(Names(), testing::IsEmpty());
}

class StartByUri : public ModelTest {
 protected:
  StartByUri() {
    std::filesystem::create_directories(folder_);
    dataset_roots_.AddFolder(folder_);
    PutDigits();
    const std::vector<float> values(12, 0.5);
    const auto* const bytes = reinterpret_cast<const char*>(values.data());
    const TensorView weight{"fc1.weight", TensorType::kFloat32, {3, 4}, bytes, 48};
    const TensorView bias{"fc1.bias", TensorType::kFloat32, {3}, bytes, 12};
    Write("part", WriteSafetensors({bias}, {}));
    Write("map", WriteSafetensors({weight, bias}, {}));
    Write("net", TorchScriptArchive(1));
  }
  ~StartByUri() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  v1::JobSpec Job(const std::string& name, const std::string& start) const {
    v1::JobSpec spec = SoftmaxJob(name);
    spec.mutable_init()->add_weights(start);
    return spec;
  }
  void ExpectRefused(const v1::JobSpec& spec, const std::string& words) {
    const auto job = CreateJob(spec);
    ASSERT_FALSE(job.ok()) << words;
    EXPECT_THAT(std::string(job.status().message()), HasSubstr(words));
  }

  const std::string folder_ = testing::TempDir() + "starts-" + std::to_string(::getpid());
  const std::string root_ = "file://" + folder_ + "/";
};

TEST_F(StartByUri, IsStoredOnceAndTheJobNamesIt) {
  const auto job = CreateJob(Job("first", root_ + "map"), "id-1");
  ASSERT_TRUE(job.ok()) << job.status();
  const std::vector<std::string> names = Names();
  ASSERT_EQ(names.size(), 1U);
  EXPECT_THAT(names[0], testing::StartsWith("weights-"));
  EXPECT_THAT(job->spec().init().weights(), testing::ElementsAreArray(names));
  const auto again = CreateJob(Job("first", root_ + "map"), "id-1");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->id(), job->id()) << "a repeated call made another job";
  ASSERT_TRUE(CreateJob(Job("second", root_ + "map")).ok());
  EXPECT_EQ(Names(), names) << "stored twice";
  EXPECT_EQ(ReasonOf(Delete(names[0])), "IN_USE");
}

TEST_F(StartByUri, TakesTheNameThatTheContentHas) {
  ASSERT_TRUE(PutUri("mine", root_ + "map").ok());
  v1::JobSpec spec = Job("first", "mine");
  ASSERT_TRUE(CreateJob(spec).ok());
  spec.mutable_init()->set_weights(0, root_ + "map");
  const auto job = CreateJob(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->spec().init().weights(), testing::ElementsAre("mine"));
  EXPECT_THAT(Names(), testing::ElementsAre("mine"));
}

TEST_F(StartByUri, RefusesWhatIsNoStartAndNamesTheField) {
  ExpectRefused(Job("first", root_ + "net"), "init.weights[0]: " + root_ + "net is not a safetensors file");
  ExpectRefused(Job("first", root_ + "gone"), "init.weights[0]: ");
  ExpectRefused(Job("first", "file:///etc/hostname"), "init.weights[0]: ");
  ExpectRefused(Job("first", "http://host/map"), "init.weights[0]: ");
  v1::JobSpec unfit = Job("No Good", root_ + "map");
  ExpectRefused(unfit, "name");
  unfit = Job("twice", root_ + "map");
  for (int i = 0; i < 1000; ++i) unfit.mutable_init()->add_weights(root_ + "map");
  ExpectRefused(unfit, "at most 256 files");
  v1::CreateJobRequest dry_run;
  *dry_run.mutable_spec() = Job("first", root_ + "map");
  dry_run.set_validate_only(true);
  EXPECT_THAT(std::string(Call(*jobs_, &v1::JobService::Stub::CreateJob, dry_run).status().message()),
              HasSubstr("init.weights: names files by URI"));
  EXPECT_THAT(Names(), testing::IsEmpty());
  ExpectRefused(Job("first", root_ + "part"), "lacks fc1.weight");
}

}  // namespace
}  // namespace chainfleet
