// The job API over HTTP: every call of users has a path, and bodies are protobuf's JSON.
#include <gmock/gmock.h>

#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "core/formats/npy.h"
#include "core/formats/npz.h"
#include "core/store/draw_codec/sha256.h"
#include "server/rpc/gateway/routes.h"
#include "tests/server/rpc/gateway/http_before_server.h"
#include "tests/server/rpc/torch_script_archive.h"

namespace chainfleet {
namespace {

using testing::HasSubstr;

constexpr char kSpec[] =
    R"({"spec": {"name": "g", "model": {"potential": {"gaussian": {"dimension": 2}}}, "sampler": {"sgld": {}},
    "step_size": {"constant": 0.1}, "batch_size": 1, "num_steps": 100, "chains": 2})";

class JobApiTest : public HttpBeforeServer {};

TEST_F(JobApiTest, EveryCallOfUsersHasAPath) {
  std::set<std::string> served;
  for (const Route& route : Routes()) served.insert(route.method);
  for (const auto* service : {v1::Job::descriptor()->file()->FindServiceByName("JobService"),
                              v1::PredictRequest::descriptor()->file()->FindServiceByName("PredictService")}) {
    for (int i = 0; i < service->method_count(); ++i) {
      EXPECT_TRUE(served.contains(service->method(i)->full_name())) << service->method(i)->full_name();
    }
  }
}

TEST_F(JobApiTest, AJobFromItsCreationToItsEnd) {
  const PeerReply created = Ask(Post("/v1/jobs", absl::StrCat(kSpec, R"(, "requestId": "once"})")));
  ASSERT_EQ(created.code, 200) << created.body;
  const std::string id = Parsed(created)["id"];
  EXPECT_EQ(Parsed(Ask(Post("/v1/jobs", absl::StrCat(kSpec, R"(, "request_id": "once"})"))))["id"], id)
      << "both spellings";
  const json job = Parsed(Ask(Get("/v1/jobs/g")));
  EXPECT_EQ(job["id"], id);
  EXPECT_EQ(job["spec"]["num_steps"], "100") << "int64 is a string";
  EXPECT_EQ(job["chains"].size(), 2u);
  EXPECT_EQ(Parsed(Ask(Post("/v1/jobs/g/scale", R"({"chains": 3})")))["num_chains"], 3);
  EXPECT_EQ(Parsed(Ask(Post("/v1/jobs/g/intent", R"({"intent": "PAUSE"})")))["intent"], "PAUSE");
  EXPECT_EQ(Parsed(Ask(Get("/v1/jobs?page_size=1&state=PAUSED")))["jobs"].size(), 1u);
  EXPECT_EQ(Parsed(Ask(Get("/v1/jobs?state=FAILED")))["jobs"].size(), 0u);
  EXPECT_EQ(Parsed(Ask(Post("/v1/jobs/g/intent", R"({"intent": "DELETE"})")))["intent"], "DELETE");
}

TEST_F(JobApiTest, ThePathNamesTheJobWhateverTheBodySays) {
  ASSERT_EQ(Ask(Post("/v1/jobs", absl::StrCat(kSpec, "}"))).code, 200);
  EXPECT_EQ(Ask(Post("/v1/jobs/nowhere/intent", R"({"name": "g", "intent": "CANCEL"})")).code, 404);
  EXPECT_EQ(Parsed(Ask(Get("/v1/jobs/g")))["intent"], "RUN");
}

TEST_F(JobApiTest, Lists) {
  PutDigits();
  EXPECT_EQ(Parsed(Ask(Get("/v1/datasets")))["datasets"][0]["name"], "digits");
  for (const char* list : {"aliases", "models", "workers", "evaluations"}) {
    EXPECT_EQ(Parsed(Ask(Get(absl::StrCat("/v1/", list))))[list].size(), 0u) << list;
  }
  EXPECT_EQ(Ask(Get("/v1/datasets/digits", "", "DELETE")).code, 200);
  EXPECT_EQ(Parsed(Ask(Get("/v1/datasets")))["datasets"].size(), 0u);
  EXPECT_TRUE(Parsed(Ask(Get("/v1/server"))).contains("protocol_version"));
}

std::string Put(const std::string& path, const std::string& body) { return Post(path, body).replace(0, 4, "PUT"); }

TEST_F(JobApiTest, ABodyBecomesADataset) {
  std::string rows = "a,b,kind\n";
  while (std::ssize(rows) < 3 * limits::kMiB) rows += "1.5,2,0\n2.5,3,1\n";  // several messages
  const PeerReply put = Ask(Put("/v1/datasets/rows?class_names=no&class_names=yes", rows));
  ASSERT_EQ(put.code, 200) << put.body;
  EXPECT_EQ(Parsed(put)["num_rows"], std::to_string((rows.size() - 9) / 8));
  EXPECT_EQ(Parsed(put)["class_names"], json({"no", "yes"}));
  const PeerReply strange = Ask(Put("/v1/datasets/strange", "a,b\n1.5,0\n2.5,2\n"));
  EXPECT_THAT(Parsed(strange)["warnings"][0].get<std::string>(), HasSubstr("no row has label 1"));
  const PeerReply numbers = Ask(Put("/v1/datasets/numbers?target=a&target_type=FLOAT32_TARGETS", "a,b\n1.5,2\n2,3\n"));
  ASSERT_EQ(numbers.code, 200) << numbers.body;
  EXPECT_EQ(Parsed(numbers)["input_shape"], json({"1"}));
  const Array x{ArrayType::kUint8, {2, 3}, "abcdef"}, y{ArrayType::kUint8, {2}, std::string("\0\1", 2)};
  const std::string npz = *WriteNpz({{"x", x}, {"y", y}});
  EXPECT_EQ(Parsed(Ask(Put("/v1/datasets/arrays", npz)))["input_shape"], json({"3"}));
  EXPECT_EQ(Ask(Put("/v1/datasets/arrays", npz)).code, 200) << "the same content again";
  ExpectError(Put("/v1/datasets/arrays", "1,0\n2,1\n"), 409, "arrays");
  EXPECT_EQ(Parsed(Ask(Get("/v1/datasets")))["datasets"].size(), 4u);
}

TEST_F(JobApiTest, ABodyThatIsNoDatasetIsRefused) {
  ExpectError(Put("/v1/datasets/bad", "a,b\n1,x\n"), 400, "bad.csv");
  ExpectError(Put("/v1/datasets/bad", ""), 400, "bad.csv");
  ExpectError(Put("/v1/datasets/bad", WriteNpy({ArrayType::kUint8, {1}, "a"})), 400, "bad");
  ExpectError(Put("/v1/datasets/bad", "PK"), 400, "bad");
  ExpectError(Put("/v1/datasets/bad?wish=1", "1,0\n"), 400, "wish");
  ExpectError(Put("/v1/datasets/bad?class_names=one", "1,0\n2,1\n"), 400, "class_names");
  ExpectError(Put("/v1/datasets/%20", "1,0\n"), 400, "name");
  EXPECT_EQ(Parsed(Ask(Get("/v1/datasets")))["datasets"].size(), 0u);
}

TEST_F(JobApiTest, ABodyBecomesAModel) {
  const std::string file = TorchScriptArchive(1);
  const PeerReply put = Ask(Put("/v1/models/net", file));
  ASSERT_EQ(put.code, 200) << put.body;
  EXPECT_EQ(Parsed(put)["object"]["size_bytes"], std::to_string(file.size()));
  EXPECT_EQ(Ask(Put("/v1/models/net?size_bytes=1", file)).code, 200) << "the same content again; the body has its size";
  ExpectError(Put("/v1/models/net", TorchScriptArchive(2)), 409, "net");
  ExpectError(Put("/v1/models/bad", "PK"), 400, "bad");
  EXPECT_EQ(Parsed(Ask(Get("/v1/models")))["models"].size(), 1u);
}

TEST_F(JobApiTest, WrongFieldsAreNamed) {
  const PeerReply wrong = Ask(Post("/v1/jobs", R"({"spec": {"name": "g", "chains": -1}})"));
  EXPECT_EQ(wrong.code, 400);
  EXPECT_EQ(Parsed(wrong)["reason"], "INVALID_FIELD");
  EXPECT_FALSE(Parsed(wrong)["fields"].empty());
  ExpectError(Post("/v1/jobs", "{"), 400, "CreateJobRequest");
  ExpectError(Post("/v1/jobs", R"({"wish": 1})"), 400, "wish");
  ExpectError(Post("/v1/jobs", R"({"spec": {"chains": "many"}})"), 400, "many");
  ExpectError(Post("/v1/jobs", "[]"), 400, "CreateJobRequest");
  ExpectError(Post("/v1/jobs", std::string(100'000, '[')), 400, "CreateJobRequest");
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += R"({"spec":)";
  ExpectError(Post("/v1/jobs", deep), 400, "CreateJobRequest");
  ExpectError(Post("/v1/jobs", "{\"request_id\": \"\xff\"}"), 400, "CreateJobRequest");
  ExpectError(Get("/v1/jobs?page_size=many"), 400, "page_size");
  ExpectError(Get("/v1/jobs?wish=1"), 400, "wish");
  EXPECT_EQ(Parsed(Ask(Get("/v1/jobs?wish=1")))["reason"], "INVALID_ARGUMENT");
  ExpectError(Get("/v1/jobs/nowhere/snapshots/x", "", "DELETE"), 400, "version");
  ExpectError(Get("/v1/jobs/nowhere"), 404, "nowhere");
  ExpectError(Post("/v1/jobs/nowhere/intent", R"({"intent": "FLY"})"), 400, "FLY");
  ExpectError(Post("/v1/jobs/nowhere/predict", R"({"inputs": {"data": "no base64!"}})"), 400, "PredictRequest");
}

TEST_F(JobApiTest, ABodyOfManyEmptyMessagesIsRefusedBeforeTheyAreMade) {
  std::string layers = "{}";
  for (int i = 0; i < 1'500'000; ++i) layers += ",{}";
  ExpectError(Post("/v1/jobs", R"({"spec":{"model":{"layers":[)" + layers + "]}}}"), 429, "MiB of memory");
}

TEST_F(JobApiTest, AJobIsWatchedByServerSentEvents) {
  ASSERT_EQ(Ask(Post("/v1/jobs", absl::StrCat(kSpec, "}"))).code, 200);
  HttpPeer watcher(http_->port());
  watcher.Send(Get("/v1/jobs/g/watch?min_interval_seconds=0.01"));
  EXPECT_THAT(watcher.ReadUntil("\r\n\r\n"), HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(watcher.ReadUntil("\n\n"), testing::AllOf(HasSubstr("data: {"), HasSubstr("\"intent\":\"RUN\"")));
  ASSERT_TRUE(SetIntent("g", v1::Job::PAUSE).ok());
  EXPECT_THAT(watcher.ReadUntil("\"intent\":\"PAUSE\""), HasSubstr("data: {"));
  ASSERT_TRUE(SetIntent("g", v1::Job::CANCEL).ok());
  EXPECT_THAT(watcher.ReadUntil("event: end\ndata: {}\n\n"), HasSubstr("\"state\":\"CANCELLED\""));
}

class RevokedTokenTest : public HttpBeforeServer {
 protected:
  RevokedTokenTest() : HttpBeforeServer({{"admin", "default", Role::kAdmin}}) { token_ = "admin"; }
};

TEST_F(RevokedTokenTest, AWatchEndsWithAnErrorEvent) {
  const AccessToken token{.sha256 = Sha256Hex("made"),
                          .tenant = "default",
                          .role = Role::kReader,
                          .expires_at = clock_.Wall() + absl::Hours(1)};
  Waited<absl::StatusOr<AccessToken>> added;
  coordinator_.tokens().Add(token, added.Take());
  ASSERT_TRUE(added.Get()->ok()) << added.Get()->status();
  ASSERT_TRUE(CreateJob(GaussianJob("g")).ok());
  HttpPeer watcher(http_->port());
  watcher.Send(Get("/v1/jobs/g/watch", "Authorization: Bearer made\r\n"));
  EXPECT_THAT(watcher.ReadUntil("\n\n"), HasSubstr("data: {"));
  Waited<absl::StatusOr<bool>> revoked;
  coordinator_.tokens().Revoke(TokenId(token.sha256), std::nullopt, revoked.Take());
  ASSERT_TRUE(revoked.Get()->ok()) << revoked.Get()->status();
  watcher.ReadUntil("event: error\ndata: ");
  EXPECT_THAT(watcher.ReadUntil("\n\n"), HasSubstr("\"UNAUTHENTICATED\""));
}

TEST_F(JobApiTest, ASegmentIsOneBodyThatIsCutIfItsBytesChanged) {
  ASSERT_EQ(Ask(Post("/v1/jobs", absl::StrCat(kSpec, "}"))).code, 200);
  CommitADraw();
  const std::string object = Parsed(Ask(Get("/v1/jobs/g/segments")))["segments"][0]["segment"]["object"]["name"];
  const std::string path = absl::StrCat("/v1/jobs/g/segments/", absl::StrReplaceAll(object, {{"/", "%2F"}}));
  const std::string end = "0\r\n\r\n";
  ASSERT_TRUE(blobs_.Put(object, kDrawBytes).ok());
  const std::string whole = HttpPeer(http_->port()).Send(Get(path)).ReadUntil(end);
  EXPECT_THAT(whole, testing::AllOf(HasSubstr("200 OK"), HasSubstr("Content-Type: application/octet-stream"),
                                    HasSubstr(absl::StrCat("\r\n", kDrawBytes, "\r\n")), testing::EndsWith(end)));
  ASSERT_TRUE(blobs_.Delete(object).ok());
  ASSERT_TRUE(blobs_.Put(object, "ten other!").ok());
  EXPECT_THAT(HttpPeer(http_->port()).Send(Get(path)).ReadUntil(end), testing::Not(testing::EndsWith(end)));
  ASSERT_TRUE(blobs_.Delete(object).ok());
  EXPECT_EQ(Parsed(Ask(Get(path)))["reason"], "OBJECT_MISSING");
  const PeerReply unknown = Ask(Get(path + "0"));
  EXPECT_EQ(unknown.code, 404);
  EXPECT_EQ(Parsed(unknown)["reason"], "SEGMENT_NOT_FOUND");
  EXPECT_THAT(Parsed(unknown)["error"].get<std::string>(), HasSubstr("has no segment"));
}

TEST_F(JobApiTest, StreamsFailBeforeTheyBegin) {
  ExpectError(Get("/v1/jobs/nowhere/segments/store%2Fsegment"), 404, "nowhere");
  ExpectError(Get("/v1/jobs/nowhere/watch"), 404, "nowhere");
  ExpectError(Post("/v1/jobs/nowhere/evaluate", R"({"dataset": "digits"})"), 404, "nowhere");
  ExpectError(Get("/v1/jobs/nowhere/watch?min_interval_seconds=often"), 400, "min_interval_seconds");
}

TEST_F(JobApiTest, TheServerEndsWhileStreamsAreOpen) {
  ASSERT_EQ(Ask(Post("/v1/jobs", absl::StrCat(kSpec, "}"))).code, 200);
  HttpPeer reads(http_->port());
  auto gone = std::make_unique<HttpPeer>(http_->port());
  for (HttpPeer* peer : {&reads, gone.get()}) peer->Send(Get("/v1/jobs/g/watch")).ReadUntil("\n\n");
  gone.reset();
  http_.reset();
  EXPECT_THAT(reads.ReadUntil("never"), HasSubstr("event: error"));
}

// The targets of all "$ref".
void CollectReferences(const json& value, std::set<std::string>* references) {
  for (const auto& [key, inner] : value.items()) {
    if (key == "$ref") references->insert(inner.get<std::string>());
    if (inner.is_structured()) CollectReferences(inner, references);
  }
}

TEST_F(JobApiTest, TheOpenApiDocumentHasEveryRouteAndEverySchema) {
  const json document = Parsed(Ask(Get("/openapi.json")));
  EXPECT_EQ(document["openapi"], "3.0.3");
  std::set<std::string> ids, references;
  for (const Route& route : Routes()) {
    const json& operation = document["paths"][route.path][absl::AsciiStrToLower(route.verb)];
    ASSERT_TRUE(operation.is_object()) << route.path;
    EXPECT_TRUE(ids.insert(operation["operationId"].get<std::string>()).second) << route.path;
    std::string path = route.path;
    for (const json& parameter : operation["parameters"]) {
      if (parameter["in"] != "path") continue;
      EXPECT_NE(path.find(absl::StrCat("{", parameter["name"].get<std::string>(), "}")), path.npos) << path;
    }
    EXPECT_EQ(operation.contains("requestBody"), HasBody(route)) << route.path;
  }
  CollectReferences(document, &references);
  EXPECT_GT(references.size(), 50u);
  for (const std::string& reference : references) {
    EXPECT_TRUE(document.contains(json::json_pointer(reference.substr(1)))) << reference;
  }
  const json& schemas = document["components"]["schemas"];
  EXPECT_EQ(schemas["chainfleet.v1.Job"]["properties"]["num_draws"]["type"], "string");
  EXPECT_EQ(schemas["inference.ModelInferRequest"]["required"], json::array({"inputs"}));
  EXPECT_EQ(schemas["inference.ModelMetadataResponse.TensorMetadata"]["properties"]["shape"]["items"]["type"],
            "integer");
}

}  // namespace
}  // namespace chainfleet
