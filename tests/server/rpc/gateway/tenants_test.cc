// Tests that a tenant cannot tell what another tenant has from what never existed, by any call, over gRPC and HTTP.
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/dynamic_message.h"
#include "inference/grpc_service.pb.h"
#include "server/control/page_token.h"
#include "server/rpc/gateway/routes.h"
#include "tests/server/rpc/contract_methods.h"
#include "tests/server/rpc/gateway/http_before_server.h"

namespace chainfleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr int kDepth = 4;

// Where a request has a text.
using Path = std::vector<const FieldDescriptor*>;

void AddPaths(const Descriptor& type, const Path& above, std::vector<Path>* paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    Path path = above;
    path.push_back(field);
    const bool is_text = field->type() == FieldDescriptor::TYPE_STRING;
    if (is_text && field->name() != "request_id") paths->push_back(path);
    const bool is_message = field->type() == FieldDescriptor::TYPE_MESSAGE && !field->is_repeated();
    if (is_message && path.size() < kDepth) AddPaths(*field->message_type(), path, paths);
  }
}

void Set(const Path& path, const std::string& value, Message* message) {
  for (size_t i = 0; i + 1 < path.size(); ++i) message = message->GetReflection()->MutableMessage(message, path[i]);
  const auto* reflection = message->GetReflection();
  if (!path.back()->is_repeated()) return reflection->SetString(message, path.back(), value);
  reflection->ClearField(message, path.back());
  reflection->AddString(message, path.back(), value);
}

// How a call ended, with the name that it asked for left out.
struct Answer {
  int code = 0;
  std::string message, details;
  bool operator==(const Answer&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << answer.code << " " << answer.message << " " << answer.details;
}

// A request that would succeed, or nearly, so that each of its names is looked up.
void Prepare(Message* request) {
  if (auto* create = dynamic_cast<v1::CreateJobRequest*>(request)) {
    *create->mutable_spec() = SoftmaxJob("another");
    create->set_validate_only(true);
  }
  if (auto* predict = dynamic_cast<v1::PredictRequest*>(request)) {
    predict->mutable_inputs()->set_type(v1::UINT8);
    for (const int64_t size : {1, 1, 2, 2}) predict->mutable_inputs()->add_shape(size);
    predict->mutable_inputs()->set_data("1234");
  }
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"job", "mine"}, {"dataset", "digits"}, {"model_name", "mine"}}) {
    const FieldDescriptor* const field = request->GetDescriptor()->FindFieldByName(name);
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_STRING) Set({field}, value, request);
  }
}

// A name that nothing has, of the same length, so that lengths in the details are the same.
std::string Missing(const std::string& name) {
  return absl::StrReplaceAll(name, {{"vjob", "xjob"},
                                    {"vision-a", "nobody-a"},
                                    {"digitsets", "nosuchset"},
                                    {"vnet9", "none9"},
                                    {"eval", "nono"},
                                    {"vworker", "xworker"},
                                    {TokenId(Sha256Hex("of vision")), TokenId(Sha256Hex("of nobody"))}});
}
Answer Without(const std::string& name, Answer answer) {
  for (std::string* text : {&answer.message, &answer.details}) *text = absl::StrReplaceAll(*text, {{name, "NAME"}});
  return answer;
}

std::unique_ptr<Message> NewRequest(const MethodDescriptor& method) {
  auto* const factory = google::protobuf::MessageFactory::generated_factory();
  return std::unique_ptr<Message>(factory->GetPrototype(method.input_type())->New());
}

// Vision has a data set, a model, a job with draws, a version with an alias, an evaluation, a worker and a token.
// Speech has the first six, and asks for those of vision, also by its operator and its admin.
class TwoTenants : public HttpBeforeServer {
 protected:
  TwoTenants()
      : HttpBeforeServer(GivenTokens{{"vision", "vision"},
                                     {"speech", "speech"},
                                     {"speech-operator", "speech", Role::kOperator},
                                     {"speech-admin", "speech", Role::kAdmin},
                                     {"operator", "default", Role::kOperator},
                                     {"worker", "default", Role::kWorker, kWork}}) {}

  void SetUp() override {
    for (const std::string& tenant : {std::string("vision"), std::string("speech")}) {
      token_ = tenant;
      const bool theirs = tenant == "vision";
      PutContent(tenant, theirs ? "digitsets" : "digits", theirs ? "vnet9" : "mynet");
      v1::JobSpec spec = SoftmaxJob(theirs ? "vjob" : "mine");
      spec.mutable_dataset()->set_name(theirs ? "digitsets" : "digits");
      ASSERT_TRUE(CreateJob(spec).ok());
    }
    SampleBoth();
    Serve();
    names_ = Fill("vision", "vjob", "digitsets");
    own_ = Fill("speech", "mine", "digits");
    for (const std::string name : {"digitsets", "vnet9"}) names_.insert({name, "vision/" + name});
    AddWorkerAndTokenOfVision();
  }
  void TearDown() override {
    serving_.TryCancel();
    shard_stream_->Finish();
  }
  // Commits a draw of each job.
  void SampleBoth() {
    SynchronizeRequest request;
    request.worker = "w1";
    request.incarnation = "life";
    request.devices = {{"cpu", int64_t{1} << 30, 4}};
    std::vector<Grant> grants;
    for (int i = 0; i < 50 && grants.size() < 2; ++i) {
      ++request.seq;
      Waited<absl::StatusOr<SynchronizeReply>> reply;
      dispatcher_.Synchronize(request, reply.Take());
      grants = reply.Get()->value().grants;
    }
    ASSERT_EQ(grants.size(), 2u);
    for (const Grant& grant : grants) CommitFirstDraw(grant.chain, grant.lease_epoch);
  }
  void AddWorkerAndTokenOfVision() {
    SynchronizeRequest request;
    request.worker = "vworker";
    request.incarnation = "life";
    request.seq = 1;
    request.devices = {{"cpu", int64_t{1} << 30, 4}};
    request.admission = {"a token", "vision"};
    Waited<absl::StatusOr<SynchronizeReply>> reply;
    dispatcher_.Synchronize(request, reply.Take());
    ASSERT_TRUE(reply.Get()->ok());
    const AccessToken token = {
        .sha256 = Sha256Hex("of vision"), .tenant = "vision", .expires_at = clock_.Wall() + absl::Hours(1)};
    Waited<absl::StatusOr<AccessToken>> added;
    coordinator_.tokens().Add(token, added.Take());
    ASSERT_TRUE(added.Get()->ok());
    names_.insert({request.worker, TokenId(token.sha256)});
  }
  // The worker takes predictions, and never answers.
  void Serve() {
    token_ = "worker";
    SetDeadline(&serving_, 120);
    SendToken(&serving_);
    shard_stream_ = workers_->ServeShards(&serving_);
    v1::ShardUpdate hello;
    hello.mutable_hello()->set_worker("w1");
    hello.mutable_hello()->set_incarnation("life");
    hello.mutable_hello()->set_protocol_version(kProtocolVersion);
    ASSERT_TRUE(shard_stream_->Write(hello));
    token_ = "vision";
    while (shards_.Workers().empty()) ASSERT_TRUE(GetJob("vjob").ok());
  }
  // Returns all names.
  std::set<std::string> Fill(const std::string& tenant, const std::string& job, const std::string& dataset) {
    token_ = tenant;
    v1::CreateSnapshotRequest version;
    version.set_job(job);
    EXPECT_TRUE(Call(*jobs_, &v1::JobService::Stub::CreateSnapshot, version).ok());
    v1::SetAliasRequest alias;
    alias.set_name(tenant + "-alias");
    alias.set_job(job);
    alias.set_version(1);
    EXPECT_TRUE(Call(*jobs_, &v1::JobService::Stub::SetAlias, alias).ok());
    v1::EvaluateRequest evaluate;
    evaluate.set_job(job);
    evaluate.set_dataset(dataset);
    const auto evaluation = Call(*predictions_, &v1::PredictService::Stub::StartEvaluation, evaluate);
    EXPECT_TRUE(evaluation.ok()) << evaluation.status();
    return {job, GetJob(job)->id(), tenant + "-alias", evaluation->id(), dataset};
  }
  void PutContent(const std::string& tenant, const std::string& dataset, const std::string& model) {
    PutDigits(tenant, dataset);
    Waited<absl::StatusOr<std::string>> upload;
    const BlobRef object{"store/models/of-" + tenant, 10, DigestHex(64, 'c')};
    content_.BeginUpload({object.name}, upload.Take());
    Waited<absl::StatusOr<StoredModel>> put;
    content_.Put(StoredModel{.name = model, .object = object, .tenant = tenant, .signature = NetworkSignature()},
                 **upload.Get(), put.Take());
    ASSERT_TRUE(put.Get()->ok());
  }

  // Calls with one message. Returns how it ended, and adds what came to `replies`.
  Answer CallOnce(const MethodDescriptor& method, const Message& request, std::string* replies = nullptr) {
    grpc::ClientContext context;
    SetDeadline(&context);
    SendToken(&context);
    context.AddMetadata(kRequestIdHeader, "the-same");
    grpc::CompletionQueue queue;
    const auto next = [&] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    const auto call = grpc::GenericStub(channel_).PrepareCall(
        &context, "/" + method.service()->full_name() + "/" + method.name(), &queue);
    call->StartCall(nullptr);
    next();
    grpc::Slice slice(request.SerializeAsString());
    call->Write(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions().set_last_message(), nullptr);
    next();
    std::string received;
    for (grpc::ByteBuffer reply;; reply.Clear()) {
      call->Read(&reply, nullptr);
      if (!next()) break;
      std::vector<grpc::Slice> slices;
      if (!reply.Dump(&slices).ok()) break;
      for (const grpc::Slice& part : slices) received.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
    grpc::Status status;
    call->Finish(&status, nullptr);
    next();
    queue.Shutdown();
    while (next()) continue;
    // The replies of the inference protocol tell of models that are not ready, too.
    if (replies == nullptr && status.ok() && absl::StartsWith(method.name(), "Model")) return {0, received, ""};
    if (replies != nullptr) replies->append(received);
    return {status.error_code(), status.error_message(), status.error_details()};
  }

  std::set<std::string> names_, own_;
  grpc::ClientContext serving_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ShardUpdate, v1::ShardOrder>> shard_stream_;
};

// Texts in which a name is looked up for a writer, an operator and an admin of a tenant.
using Texts = std::span<const char* const>;
constexpr const char* kOfWriters[] = {"CreateJob.name",
                                      "CreateJob.exported",
                                      "CreateJob.weights",
                                      "GetJob.name",
                                      "WatchJob.name",
                                      "ListEvents.job",
                                      "SetIntent.name",
                                      "ScaleJob.name",
                                      "ListSegments.job",
                                      "GetTraces.job",
                                      "ReadSegment.job",
                                      "CreateSnapshot.job",
                                      "ListSnapshots.job",
                                      "DeleteSnapshot.job",
                                      "SetAlias.job",
                                      "DeleteAlias.name",
                                      "ReadRows.dataset",
                                      "DeleteDataset.name",
                                      "ShareDataset.name",
                                      "DeleteModel.name",
                                      "ShareModel.name",
                                      "Predict.job",
                                      "Evaluate.job",
                                      "Evaluate.dataset",
                                      "Evaluate.ood_dataset",
                                      "Evaluate.calibration_dataset",
                                      "Evaluate.stacking_dataset",
                                      "Predict.weights",
                                      "Predict.conformal",
                                      "StartEvaluation.dataset",
                                      "GetEvaluation.id",
                                      "ListEvaluations.job",
                                      "CancelEvaluation.id",
                                      "ModelMetadata.name",
                                      "ModelConfig.name",
                                      "ModelInfer.model_name"};
constexpr const char* kOfOperators[] = {"DrainWorker.worker", "DeleteDataset.name", "ShareModel.name"};
constexpr const char* kOfAdmins[] = {"RevokeToken.id", "DrainWorker.worker", "DeleteModel.name"};
// All other methods: they list what the caller has, name what is new, answer without NOT_FOUND, or are refused to
// every caller of a tenant.
constexpr const char* kOthers[] = {
    "CreateToken",      "ListTokens",      "ListAudit",       "Backup",       "ReadObject",  "Restore",
    "ListJobs",         "ListAliases",     "PutDataset",      "ListDatasets", "PutModel",    "ListModels",
    "ListWorkers",      "GetServerInfo",   "ServerLive",      "ServerReady",  "ModelReady",  "ServerMetadata",
    "ModelStreamInfer", "ModelStatistics", "RepositoryIndex", "Join",         "Synchronize", "CommitProgress",
    "PutBlob",          "SignUpload",      "GetBlob",         "ServeShards"};

class NamesOfOthers : public TwoTenants {
 protected:
  void ExpectLookedUp(const std::string& token, Texts texts) {
    token_ = token;
    const std::set<std::string> not_found = AskForAllNames();
    for (const char* text : texts) EXPECT_TRUE(not_found.contains(text)) << text << " was never looked up";
  }

  // Asks for each name in each text of each request. Returns the texts in which one was looked up and not found.
  std::set<std::string> AskForAllNames() {
    std::set<std::string> not_found;
    for (const MethodDescriptor* method : ContractMethods()) {
      std::vector<Path> paths;
      AddPaths(*method->input_type(), {}, &paths);
      for (const Path& path : paths) {
        for (const std::string& name : names_) {
          const auto request = NewRequest(*method);
          Prepare(request.get());
          Set(path, name, request.get());
          const Answer theirs = Without(name, CallOnce(*method, *request));
          EXPECT_NE(Missing(name), name);
          Set(path, Missing(name), request.get());
          const std::string what = method->name() + "." + path.back()->name();
          EXPECT_EQ(theirs, Without(Missing(name), CallOnce(*method, *request))) << what << " " << name;
          if (theirs.code == grpc::StatusCode::NOT_FOUND) not_found.insert(what);
        }
      }
    }
    return not_found;
  }
};

TEST(NamesOfOthersTables, HaveEveryMethod) {
  std::set<std::string> known(std::begin(kOthers), std::end(kOthers));
  for (const Texts texts : {Texts(kOfWriters), Texts(kOfOperators), Texts(kOfAdmins)}) {
    for (const std::string text : texts) known.insert(text.substr(0, text.find('.')));
  }
  for (const MethodDescriptor* method : ContractMethods()) {
    EXPECT_EQ(known.erase(method->name()), 1u) << method->full_name() << ": add its texts that name something";
  }
  EXPECT_THAT(known, testing::IsEmpty()) << "these are no methods";
}

TEST_F(NamesOfOthers, AreAnsweredAsNamesOfNothing) { ExpectLookedUp("speech", kOfWriters); }
TEST_F(NamesOfOthers, AreAnsweredToAnOperatorAsNamesOfNothing) { ExpectLookedUp("speech-operator", kOfOperators); }
TEST_F(NamesOfOthers, AreAnsweredToAnAdminAsNamesOfNothing) { ExpectLookedUp("speech-admin", kOfAdmins); }

TEST_F(TwoTenants, ListsHaveNothingOfOthers) {
  for (const std::string token : {"speech", "speech-operator", "speech-admin"}) {
    token_ = token;
    std::string replies;
    for (const MethodDescriptor* method : ContractMethods()) {
      if (!absl::StartsWith(method->name(), "List") && method->name() != "RepositoryIndex") continue;
      if (method->service()->name() == "AccessService" && token != "speech-admin") continue;
      const auto request = NewRequest(*method);
      Prepare(request.get());
      EXPECT_EQ(CallOnce(*method, *request, &replies).code, 0) << token << method->name();
    }
    for (const std::string& own : own_) EXPECT_THAT(replies, testing::HasSubstr(own)) << token;
    for (const std::string& theirs : names_) EXPECT_THAT(replies, testing::Not(testing::HasSubstr(theirs))) << token;
    EXPECT_THAT(replies, testing::Not(testing::HasSubstr("vision"))) << token;
    const auto info = Call(*jobs_, &v1::JobService::Stub::GetServerInfo, v1::GetServerInfoRequest());
    EXPECT_EQ(info->data_directory(), "") << token;
    EXPECT_EQ(info->caller().tenant(), "speech") << token;
  }
}

TEST_F(TwoTenants, PathsOfHttpWithNamesOfOthersAreAnsweredAsPathsOfNothing) {
  // The admin has all rights that anyone of speech has.
  const std::string token = "Authorization: Bearer speech-admin\r\nX-Request-Id: the-same\r\n";
  for (const Route& route : Routes()) {
    const std::string path = route.path;
    for (size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1)) {
      if (route.method == std::string("chainfleet.v1.JobService.PutDataset")) continue;  // names a new one
      for (const std::string& name : names_) {
        const auto ask = [&](const std::string& value) {
          const std::string encoded = absl::StrReplaceAll(value, {{"/", "%2F"}});
          std::string asked = path.substr(0, at) + encoded + path.substr(path.find('}', at) + 1);
          for (size_t other = asked.find('{'); other != std::string::npos; other = asked.find('{')) {
            asked.replace(other, asked.find('}') - other + 1, absl::StrContains(asked, "version}") ? "1" : "mine");
          }
          const std::string body = HasBody(route) ? "Content-Length: 2\r\n" : "";
          const PeerReply reply = Ask(Get(asked, body + token, route.verb) + (HasBody(route) ? "{}" : ""));
          return absl::StrCat(reply.code, " ", absl::StrReplaceAll(reply.body, {{encoded, "NAME"}, {value, "NAME"}}));
        };
        EXPECT_EQ(ask(name), ask(Missing(name))) << route.verb << " " << path;
      }
    }
  }
}

// Asks "mine" for a row with an evaluation's id in a parameter, a map's value, which AskForAllNames leaves out.
class EvaluationsInParameters : public TwoTenants {
 protected:
  std::string EvaluationOf(const std::string& tenant) {
    token_ = tenant;
    const auto list =
        Call(*predictions_, &v1::PredictService::Stub::ListEvaluations, v1::ListEvaluationsRequest()).value();
    return list.evaluations(0).id();
  }
  Answer Infer(const std::string& method, const std::string& parameter, const std::string& id) {
    inference::ModelInferRequest request;
    request.set_model_name("mine");
    inference::ModelInferRequest::InferInputTensor* const input = request.add_inputs();
    input->set_name("x");
    input->set_datatype("UINT8");
    for (const int64_t size : {1, 1, 2, 2}) input->add_shape(size);
    request.add_raw_input_contents("1234");
    (*request.mutable_parameters())[parameter].set_string_param(id);
    const auto* const called = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
        "inference.GRPCInferenceService." + method);
    return Without(id, CallOnce(*called, request));
  }
  Answer InferByHttp(const std::string& parameter, const std::string& id) {
    const std::string body = absl::StrCat(
        R"({"inputs":[{"name":"x","shape":[1,1,2,2],"datatype":"UINT8","data":[1,2,3,4]}],"parameters":{")", parameter,
        R"(":")", id, R"("}})");
    const PeerReply reply = Ask(Post("/v2/models/mine/infer", body,
                                     absl::StrCat("Authorization: Bearer ", token_, "\r\nX-Request-Id: the-same\r\n")));
    return Without(id, {reply.code, reply.body, ""});
  }
};

TEST_F(EvaluationsInParameters, AreAnsweredAsIdsOfNothingIfTheyAreOfOthers) {
  const std::string theirs = EvaluationOf("vision"), own = EvaluationOf("speech");
  std::string missing = theirs;
  missing.back() = theirs.back() == 'a' ? 'b' : 'a';
  for (const std::string parameter : {"weights", "conformal"}) {
    for (const std::string method : {"ModelInfer", "ModelStreamInfer", "HTTP"}) {
      const auto ask = [&](const std::string& id) {
        return method == "HTTP" ? InferByHttp(parameter, id) : Infer(method, parameter, id);
      };
      const Answer answer = ask(theirs);
      EXPECT_THAT(answer.message, testing::HasSubstr("no evaluation NAME")) << method << " " << parameter;
      EXPECT_EQ(answer, ask(missing)) << method << " " << parameter;
      EXPECT_THAT(ask(own).message, testing::HasSubstr("evaluation NAME is ")) << method << " " << parameter;
    }
  }
}

TEST_F(TwoTenants, ObjectsOfOthersAreAnsweredAsObjectsOfNothing) {
  const auto object_of = [&](const std::string& tenant, const std::string& job) {
    token_ = tenant;
    v1::ListSegmentsRequest list;
    list.set_job(job);
    return Call(*jobs_, &v1::JobService::Stub::ListSegments, list)->segments(0).segment().object().name();
  };
  const std::string theirs = object_of("vision", "vjob"), missing = Missing(theirs);
  ASSERT_NE(theirs, missing);
  ASSERT_TRUE(blobs_.Put(theirs, kDrawBytes).ok());
  const auto* const read =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName("chainfleet.v1.JobService.ReadSegment");
  const auto ask = [&](const std::string& job, const std::string& object) {
    v1::ReadSegmentRequest request;
    request.set_job(job);
    request.set_object(object);
    return Without(object, CallOnce(*read, request));
  };
  const auto ask_by_http = [&](const std::string& job, const std::string& object) {
    const std::string encoded = absl::StrReplaceAll(object, {{"/", "%2F"}});
    const PeerReply reply = Ask(Get(absl::StrCat("/v1/jobs/", job, "/segments/", encoded),
                                    absl::StrCat("Authorization: Bearer ", token_, "\r\nX-Request-Id: the-same\r\n")));
    return absl::StrCat(reply.code, " ", absl::StrReplaceAll(reply.body, {{encoded, "NAME"}, {object, "NAME"}}));
  };
  token_ = "vision";
  ASSERT_EQ(ask("vjob", theirs).code, grpc::StatusCode::OK) << "its owner reads it";
  ASSERT_TRUE(absl::StartsWith(ask_by_http("vjob", theirs), "200"));
  token_ = "speech";
  for (const std::string job : {"mine", "vjob"}) {
    EXPECT_EQ(ask(job, theirs).code, grpc::StatusCode::NOT_FOUND) << job;
    EXPECT_EQ(ask(job, theirs), ask(job, missing)) << job;
    EXPECT_EQ(ask_by_http(job, theirs), ask_by_http(job, missing)) << job;
  }
}

TEST_F(TwoTenants, ForgedPageTokensWithIdsOfOthersAreAnsweredAsThoseWithIdsOfNothing) {
  token_ = "speech";
  const std::map<std::string, std::string> lists = {{"JobService.ListJobs", "jobs  speech"},
                                                    {"PredictService.ListEvaluations", "evaluations\nspeech\n"}};
  for (const auto& [name, arguments] : lists) {
    const auto* const method =
        google::protobuf::DescriptorPool::generated_pool()->FindMethodByName("chainfleet.v1." + name);
    const auto ask = [&, &arguments = arguments](const std::string& cursor) {
      const auto request = NewRequest(*method);
      Set({method->input_type()->FindFieldByName("page_token")}, MakePageToken(arguments, cursor), request.get());
      return CallOnce(*method, *request);
    };
    EXPECT_EQ(std::ranges::count_if(own_, [&](const std::string& own) { return ask(own).code == 0; }), 1)
        << name << ": by the id of its own item";
    for (const std::string& theirs : names_) {
      EXPECT_EQ(ask(theirs).code, grpc::StatusCode::INVALID_ARGUMENT) << name << " " << theirs;
      EXPECT_EQ(ask(theirs), ask(Missing(theirs))) << name << " " << theirs;
    }
    EXPECT_EQ(ask("2"), ask("none")) << name << ": a sequence number";
  }
}

TEST_F(TwoTenants, SharedContentIsUsedByItsQualifiedNameUntilSharingEnds) {
  v1::ShareRequest share;
  share.set_name("digitsets");
  share.add_tenants("speech");
  token_ = "vision";
  const auto shared = Call(*jobs_, &v1::JobService::Stub::ShareDataset, share);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_THAT(shared->shared_with(), testing::ElementsAre("speech"));
  token_ = "speech";
  v1::JobSpec spec = SoftmaxJob("borrows");
  spec.mutable_dataset()->set_name("vision/digitsets");
  const auto job = CreateJob(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec().dataset().name(), "vision/digitsets");
  const auto names = [&] {
    std::vector<std::string> names;
    const auto list = Call(*jobs_, &v1::JobService::Stub::ListDatasets, v1::ListDatasetsRequest());
    for (const v1::Dataset& dataset : list->datasets()) {
      names.push_back(dataset.name());
      EXPECT_TRUE(dataset.shared_with().empty() || token_ != "speech") << "the owner's matter";
    }
    return names;
  };
  EXPECT_THAT(names(), testing::ElementsAre("digits", "vision/digitsets"));
  token_ = "vision";
  v1::DeleteDatasetRequest gone;
  gone.set_name("digitsets");
  EXPECT_THAT(std::string(Call(*jobs_, &v1::JobService::Stub::DeleteDataset, gone).status().message()),
              testing::AllOf(testing::HasSubstr("vjob-"), testing::HasSubstr("jobs of other tenants"),
                             testing::Not(testing::HasSubstr("borrows"))));
  share.clear_tenants();
  share.set_stop(true);
  EXPECT_EQ(Call(*jobs_, &v1::JobService::Stub::ShareDataset, share)->shared_with_size(), 0);
  token_ = "speech";
  EXPECT_THAT(names(), testing::ElementsAre("digits"));
  EXPECT_EQ(ReasonOf(CreateJob(spec).status()), "DATASET_NOT_FOUND");
  EXPECT_THAT(GetJob("borrows")->state(), testing::AnyOf(v1::Job::PENDING, v1::Job::RUNNING)) << "it goes on";
  token_ = "operator";
  EXPECT_THAT(names(), testing::ElementsAre("speech/digits", "vision/digitsets"));
}

TEST_F(TwoTenants, SharingWithAllIncludesTenantsToCome) {
  v1::ShareRequest share;
  share.set_name("vnet9");
  token_ = "vision";
  EXPECT_EQ(ReasonOf(Call(*jobs_, &v1::JobService::Stub::ShareModel, share).status()), "INVALID_FIELD") << "with whom?";
  share.add_tenants("*");
  ASSERT_TRUE(Call(*jobs_, &v1::JobService::Stub::ShareModel, share).ok());
  token_ = "speech";
  const auto models = Call(*jobs_, &v1::JobService::Stub::ListModels, v1::ListModelsRequest());
  ASSERT_EQ(models->models_size(), 2);
  EXPECT_EQ(models->models(1).name(), "vision/vnet9");
}

TEST_F(TwoTenants, WorkersShowATenantItsOwnChains) {
  struct Case {
    const char* token;
    std::vector<std::pair<std::string, int>> chains;
  };
  for (const Case& given : {Case{"vision", {{"vworker", 0}, {"w1", 1}}},
                            {"speech", {{"w1", 1}}},
                            {"speech-operator", {{"w1", 1}}},
                            {"operator", {{"vworker", 0}, {"w1", 2}}}}) {
    token_ = given.token;
    const auto workers = Call(*jobs_, &v1::JobService::Stub::ListWorkers, v1::ListWorkersRequest());
    std::vector<std::pair<std::string, int>> chains;
    for (const v1::Worker& worker : workers->workers()) chains.emplace_back(worker.id(), worker.chains());
    EXPECT_EQ(chains, given.chains) << token_;
  }
}

}  // namespace
}  // namespace chainfleet
