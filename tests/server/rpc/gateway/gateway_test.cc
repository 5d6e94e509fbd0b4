// The HTTP port before a real gRPC server: paths, codes, tokens and bad input.
#include "server/rpc/gateway/gateway.h"

#include <gmock/gmock.h>

#include <string>

#include "server/http/http_limits.h"
#include "server/rpc/gateway/routes.h"
#include "server/rpc/standby_server.h"
#include "tests/server/rpc/contract_methods.h"
#include "tests/server/rpc/gateway/http_before_server.h"
#include "tests/support/deflated.h"
#include "tests/support/scrape.h"

namespace chainfleet {
namespace {

using testing::Contains;
using testing::HasSubstr;

// The path of a route with 1 for each field.
std::string FilledPath(const Route& route) {
  std::string path = route.path;
  for (size_t open; (open = path.find('{')) != path.npos;) path.replace(open, path.find('}') - open + 1, "1");
  return path;
}

class GatewayWithJob : public HttpBeforeServer {
 protected:
  void SetUp() override {
    PutDigits();
    ASSERT_TRUE(CreateJob(SoftmaxJob("softmax")).ok());
  }
  static constexpr char kInfer[] = "/v2/models/softmax/infer";
};

TEST_F(GatewayWithJob, EveryRouteNamesAMethodAndItsFields) {
  for (const Route& route : Routes()) {
    const RouteMatch match = FindRoute(route.verb, FilledPath(route));
    EXPECT_EQ(match.route, &route) << route.path;
    for (const auto& [field, value] : match.fields) {
      EXPECT_NE(RequestOf(route).FindFieldByName(field), nullptr) << route.path;
    }
  }
}

TEST_F(GatewayWithJob, HealthAndMetadata) {
  EXPECT_EQ(Ask(Get("/healthz")).code, 200);
  EXPECT_EQ(Parsed(Ask(Get("/readyz")))["ready"], true);
  EXPECT_EQ(Parsed(Ask(Get("/v2/health/live")))["live"], true);
  EXPECT_EQ(Parsed(Ask(Get("/v2")))["name"], "chainfleet");
  EXPECT_EQ(Ask(Get("/v2/")).code, 404);
  EXPECT_THAT(Parsed(Ask(Get("/v2")))["extensions"], Contains("binary_tensor_data"));
  const json metadata = Parsed(Ask(Get("/v2/models/softmax")));
  EXPECT_EQ(metadata["name"], "softmax");
  EXPECT_EQ(metadata["inputs"][0], json({{"name", "x"}, {"datatype", "UINT8"}, {"shape", {-1, 1, 2, 2}}}));
  EXPECT_EQ(metadata["properties"]["x.mean"], "0.5");
  const json config = Parsed(Ask(Get("/v2/models/softmax/config")));
  EXPECT_EQ(config["input"][0]["data_type"], "TYPE_UINT8");
  EXPECT_EQ(config["input"][0]["dims"], json({1, 2, 2}));
  EXPECT_TRUE(Parsed(Ask(Get("/v2/models/stats"))).contains("model_stats"));
  EXPECT_THAT(HttpPeer(http_->port()).Send(Get("/healthz", "", "HEAD")).ReadUntil("\r\n\r\n"), HasSubstr("200 OK"));
}

TEST_F(GatewayWithJob, TheIndexNamesModelsAndAliasesAndWhyTheyAreNotReady) {
  ASSERT_TRUE(CreateJob(GaussianJob("walk")).ok());
  const std::string id = GetJob("softmax")->id();
  json index = Parsed(Ask(Post("/v2/repository/index", "")));
  ASSERT_EQ(index.size(), 1u) << "a potential is no model";
  EXPECT_EQ(index[0]["name"], id);
  EXPECT_EQ(index[0]["state"], "UNAVAILABLE");
  EXPECT_THAT(index[0]["reason"].get<std::string>(), HasSubstr("no draw"));
  EXPECT_EQ(Parsed(Ask(Post("/v2/repository/index", R"({"ready": true})"))).size(), 0u);

  ASSERT_TRUE(SetIntent("walk", v1::Job::PAUSE).ok());  // so that the draw is of the other job
  CommitADraw();
  ASSERT_EQ(Ask(Post("/v1/jobs/softmax/snapshots", "")).code, 200);
  ASSERT_EQ(
      Ask(Get("/v1/aliases/champion", "Content-Length: 33\r\n", "PUT") + R"({"job": "softmax", "version": 1 })").code,
      200);
  index = Parsed(Ask(Post("/v2/repository/index", R"({"ready": true})")));
  ASSERT_EQ(index.size(), 2u);
  EXPECT_EQ(index[0], json({{"name", id}, {"version", "1"}, {"state", "READY"}, {"reason", ""}}));
  EXPECT_EQ(index[1]["name"], "champion");
  EXPECT_EQ(index[1]["version"], "1");
  ASSERT_TRUE(SetIntent("softmax", v1::Job::CANCEL).ok());
  EXPECT_EQ(Parsed(Ask(Post("/v2/repository/index", R"({"ready": true})"))).size(), 0u);
  ExpectError(Post("/v2/repository/index", R"({"repository_name": "other"})"), 404, "other");
  ExpectError(Post("/v2/repository/index", R"({"ready": 3})"), 400, "RepositoryIndexRequest");
}

TEST_F(GatewayWithJob, NotReadyIs400AsInTriton) {
  ExpectError(Get("/v2/health/ready"), 400, "the server is not ready");
  ExpectError(Get("/v2/models/nowhere/ready"), 400, "model 'nowhere' is not ready");
  EXPECT_EQ(Parsed(Ask(Get("/v2/models/softmax/ready")))["ready"], false);
}

TEST_F(GatewayWithJob, UnknownPathsModelsAndVerbs) {
  ExpectError(Get("/v3"), 404, "/v3");
  ExpectError(Get("/v2/models//ready"), 404, "");
  ExpectError(Get("/v2/models/%00"), 404, "");
  ExpectError(Get("/v2/models/%zz"), 404, "");
  ExpectError(Get("/v2/models/nowhere"), 404, "nowhere");
  ExpectError(Get("/v2/models/a%2Fb"), 404, "a/b");
  ExpectError(Get("/v2/models/%ff%fe"), 404, "");
  ExpectError(Get("/v2/models/softmax/versions/7"), 404, "7");
  ExpectError(Get("/v2/models/softmax/versions/first"), 404, "first");
  ExpectError(Get("/v2/models/softmax/versions/-1/ready"), 404, "-1");
  ExpectError(Get("/v2/models/softmax/versions/0"), 404, "0");
  ExpectError(Get("/v2/models/softmax?wish=1"), 400, "wish");
  EXPECT_EQ(Parsed(Ask(Get("/v2/models/nowhere")))["reason"], "JOB_NOT_FOUND");
  EXPECT_EQ(Parsed(Ask(Get("/v2/models/softmax/versions/7")))["reason"], "VERSION_NOT_FOUND");
  ExpectError(Post("/v2/models/nowhere/infer", R"({"inputs":[]})"), 404, "nowhere");
  const PeerReply wrong = Ask(Get(kInfer));
  EXPECT_EQ(wrong.code, 405);
  EXPECT_THAT(wrong.head, HasSubstr("Allow: POST"));
  EXPECT_EQ(Ask(Get("/v2", "", "DELETE")).code, 405);
}

TEST_F(GatewayWithJob, BadInferencesAre400) {
  ExpectError(Post(kInfer, "{"), 400, "no JSON");
  ExpectError(Post(kInfer, ""), 400, "no JSON");
  ExpectError(Post(kInfer, "{}"), 400, "'x'");
  ExpectError(Post(kInfer, R"({"inputs":[{"name":"y","shape":[1],"datatype":"FP32","data":[1]}]})"), 400, "'x'");
  ExpectError(Post(kInfer, R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT64","data":[1]}]})"), 400, "INT64");
  ExpectError(Post(kInfer, R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP16","data":[1]}]})"), 400, "raw bytes");
  ExpectError(Post(kInfer, R"({"inputs":[{"name":"x","shape":[2],"datatype":"FP32","data":[1]}]})"), 400, "2 elements");
  ExpectError(Post(kInfer, R"({"inputs":[{"name":"x","shape":[-1],"datatype":"FP32","data":[1]}]})"), 400, "negative");
  ExpectError(Post(kInfer, std::string(100'000, '[')), 400, "deeper");
  ExpectError(Post(kInfer, std::string("\"") + std::string(100'000, 'x')), 400, "no JSON");
}

TEST_F(GatewayWithJob, CompressedBodiesAreUnpackedWithinTheBoundOnBodies) {
  const std::string index = R"({"ready": false})", gzip = "Content-Encoding: gzip\r\n";
  for (const auto& [packed, headers] :
       {std::pair(Deflated(index, kGzipFormat), gzip),
        std::pair(Deflated(index, kZlibFormat), std::string("Content-Encoding: Deflate\r\n")),
        std::pair(index, std::string("Content-Encoding: identity\r\n"))}) {
    const PeerReply reply = Ask(Post("/v2/repository/index", packed, headers));
    EXPECT_EQ(reply.code, 200) << headers << reply.body;
    EXPECT_EQ(Parsed(reply).size(), 1u) << headers;
  }
  EXPECT_EQ(Ask(Post("/v2/repository/index", "", gzip)).code, 200);
  ExpectError(Post("/v2/repository/index", index, gzip), 400, "cut or damaged");
  ExpectError(Post("/v2/repository/index", Deflated(index, kGzipFormat) + "more", gzip), 400, "4 other bytes");
  ExpectError(Post("/v2/repository/index", index, "Content-Encoding: br\r\n"), 415, "br");
  const auto most = static_cast<size_t>(limits::kHttpBodyBytes);
  ExpectError(Post(kInfer, Deflated(std::string(most, ' '), kGzipFormat), gzip), 400, "no JSON");
  ExpectError(Post(kInfer, Deflated(std::string(most + 1, ' '), kGzipFormat), gzip), 413, "16 MiB");
  EXPECT_EQ(Ask(Post(kInfer, Deflated(std::string(most * 40, ' '), kGzipFormat), gzip)).code, 413) << "a bomb";
}

TEST_F(GatewayWithJob, AFailedCallHasItsCodeReasonAndRequestId) {
  const PeerReply reply =
      Ask(Post(kInfer, R"({"inputs":[{"name":"x","shape":[1,1,2,2],"datatype":"UINT8","data":[1,2,3,4]}]})",
               "X-Request-Id: seven\r\n"));
  EXPECT_EQ(reply.code, 400);
  EXPECT_EQ(Parsed(reply)["reason"], "NO_DRAWS");
  EXPECT_EQ(Parsed(reply)["code"], "FAILED_PRECONDITION");
  EXPECT_EQ(Parsed(reply)["request_id"], "seven");
  EXPECT_THAT(reply.head, HasSubstr("X-Request-Id: seven"));
}

TEST_F(GatewayWithJob, PagesOfOtherSitesAreRefused) {
  ExpectError(Get("/v2", "Origin: http://evil.example\r\n"), 403, "other sites");
  ExpectError(Get("/v2", "Origin: null\r\n"), 403, "other sites");
  EXPECT_EQ(Ask(Get("/v2", "Origin: http://localhost\r\n")).code, 200);
  ExpectError("GET /v2 HTTP/1.1\r\nHost: evil.example:7402\r\n\r\n", 403, "no tokens");
  for (const char* host : {"localhost:7402", "127.0.0.1:7402", "127.0.0.1", "[::1]:7402"}) {
    EXPECT_EQ(Ask(absl::StrCat("GET /v2 HTTP/1.1\r\nHost: ", host, "\r\n\r\n")).code, 200) << host;
  }
}

TEST_F(GatewayWithJob, PagesOfOtherSitesGetOneLineForManyInTheAuditLog) {
  const size_t before = audit_->Read("").value().lines.size();
  constexpr size_t kRequests = 200;
  for (size_t i = 0; i < kRequests; ++i) {
    ASSERT_EQ(Ask(Get("/v1/jobs", "Origin: http://evil.example\r\n")).code, 403);
  }
  const std::vector<std::string> lines = audit_->Read("").value().lines;
  ASSERT_GT(lines.size(), before);
  EXPECT_LT(lines.size(), before + kRequests / 10) << "one in 10 s";
  const json line = json::parse(lines[before]);
  EXPECT_EQ(line["peer"], "ipv4:127.0.0.1");
  EXPECT_EQ(line["method"], "GET /v1/jobs");
  EXPECT_EQ(line["code"], "PERMISSION_DENIED");
  EXPECT_EQ(line["origin"], "http://evil.example");
  EXPECT_EQ(line["host"], "localhost");
  EXPECT_EQ(line["refusals"], 1);
}

class GatewayWithLittleMemory : public HttpBeforeServer {
 protected:
  GatewayWithLittleMemory() : HttpBeforeServer({}, 64 * limits::kKiB) {}
};

TEST_F(GatewayWithLittleMemory, ARequestWithoutRoomIsRefusedAndCounted) {
  EXPECT_EQ(Ask(Post("/v2/models/m/infer", std::string(40'000, ' '))).code, 429) << "for its body";
  EXPECT_EQ(Ask(Post("/v2/models/m/infer", std::string(10'000, ' '))).code, 429) << "for what is made of its body";
  EXPECT_THAT(Scrape(registry_.Serve("127.0.0.1:0").value()),
              HasSubstr(R"(chainfleet_refused_calls_total{bound="http_bytes",reason="QUEUE_FULL"} 2)"));
}

class GatewayWithTokens : public HttpBeforeServer {
 protected:
  GatewayWithTokens()
      : HttpBeforeServer(GivenTokens{{"vision", "vision"},
                                     {"worker", kEveryTenant, Role::kWorker},
                                     {"predictor", "vision", Role::kPredictor},
                                     {"reader", "vision", Role::kReader},
                                     {"user", "vision"},
                                     {"operator", "default", Role::kOperator},
                                     {"admin", "default", Role::kAdmin}}) {}
};

TEST_F(GatewayWithTokens, TokensAreThoseOfGrpc) {
  EXPECT_EQ(Ask(Get("/healthz")).code, 200);
  EXPECT_EQ(Ask(Get("/readyz")).code, 200);
  const PeerReply none = Ask(Get("/v2"));
  EXPECT_EQ(none.code, 401);
  EXPECT_THAT(none.head, HasSubstr("WWW-Authenticate: Bearer"));
  EXPECT_EQ(Parsed(none)["reason"], "UNAUTHENTICATED");
  ExpectError(Get("/v2", "Authorization: Bearer guess\r\n"), 401, "does not know the token");
  ExpectError(Get("/v2", "Authorization: Bearer \xff\x01\r\n"), 401, "does not know the token");
  ExpectError(Get("/v2", "Authorization: Bearer worker\r\n"), 403, "worker's token");
  ExpectError(Post("/v1/datasets/d", "1,0\n", "Authorization: Bearer worker\r\n").replace(0, 4, "PUT"), 403,
              "a token that may write");
  EXPECT_EQ(Ask(Get("/v2", "Authorization: Bearer vision\r\n")).code, 200);
  EXPECT_THAT(Scrape(registry_.Serve("127.0.0.1:0").value()), HasSubstr("chainfleet_tokens_refused_total 3"));
}

// The matrix of every role and every route.
TEST_F(GatewayWithTokens, EachRoleMayAskForTheRoutesOfTheRolesBelow) {
  for (const Route& route : Routes()) {
    const std::string least = LeastRole(GrpcPath(MethodOf(route)));
    bool may = false;
    for (const std::string role : {"worker", "predictor", "reader", "user", "operator", "admin"}) {
      may = may || role == least;
      const std::string token = "Authorization: Bearer " + role + "\r\n";
      const PeerReply reply =
          Ask(HasBody(route) ? Get(FilledPath(route), "Content-Length: 2\r\n" + token, route.verb) + "{}"
                             : Get(FilledPath(route), token, route.verb));
      const std::string what = absl::StrCat(role, " ", route.verb, " ", route.path, " ", reply.body);
      if (may) {
        EXPECT_THAT(reply.code, testing::Not(testing::AnyOf(0, 401, 403))) << what;
      } else {
        EXPECT_EQ(reply.code, 403) << what;
        EXPECT_EQ(Parsed(reply).value("reason", ""), "NOT_ALLOWED") << what;
      }
    }
    EXPECT_TRUE(may) << route.path << ": no role is " << least;
  }
}

TEST_F(GatewayWithTokens, TheTokenIsCheckedBeforeTheBody) {
  const std::string asks = "Content-Length: 16000000\r\nExpect: 100-continue\r\n";
  EXPECT_EQ(Ask(Get("/v2/models/m/infer", asks + "Authorization: Bearer guess\r\n", "POST")).code, 401);
  EXPECT_EQ(Ask(Get("/v2/models/m/infer", asks + "Authorization: Bearer vision\r\n", "POST")).code, 100);
  // A client that sends it all the same reads why.
  ExpectError(Post("/v2/models/m/infer", std::string(16'000'000, '{')), 401, "wants a token");
}

TEST_F(GatewayWithTokens, AnyHostNameIsServed) {
  EXPECT_EQ(Ask("GET /v2 HTTP/1.1\r\nHost: fleet.example\r\nAuthorization: Bearer vision\r\n\r\n").code, 200);
}

TEST_F(HttpBeforeServer, AStandbyNamesTheLeader) {
  auto standby = StandbyServer::Start({"127.0.0.1:0"}, &clock_, RngKey{1}).value();
  standby->SetLeader("other:7400");
  const auto refuse = [](const std::string&, const std::string&) { return absl::UnavailableError("standing by"); };
  http_ =
      OpenHttp(
          {"127.0.0.1:0"}, /*is_open=*/true,
          {.channel = standby->InProcessChannel(), .authorize = refuse, .clock = &clock_, .executor = threads_.get()})
          .value();
  EXPECT_EQ(Ask(Get("/healthz")).code, 200);
  ExpectError(Get("/readyz"), 503, "stands by");
  ExpectError(Post("/v2/models/m/infer", "{"), 503, "the leader is other:7400");
  EXPECT_EQ(Parsed(Ask(Get("/v1/jobs")))["reason"], "NOT_LEADER");
  http_.reset();
}

TEST_F(HttpBeforeServer, AServerThatEndsRefusesCalls) {
  auth_.RefuseAll();
  EXPECT_EQ(Ask(Get("/v2")).code, 503);
  EXPECT_EQ(Ask(Post("/v2/models/m/infer", "{}")).code, 503);
}

}  // namespace
}  // namespace chainfleet
