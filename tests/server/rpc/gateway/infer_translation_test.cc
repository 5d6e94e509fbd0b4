// JSON and binary tensors of the Open Inference Protocol.
#include <gmock/gmock.h>
#include <google/protobuf/timestamp.pb.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "inference/grpc_service.pb.h"
#include "nlohmann/json.hpp"
#include "server/http/http_limits.h"
#include "server/rpc/gateway/translation.h"

namespace chainfleet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MessageTranslation, AnswersWithAnErrorIfTheReplyHasNoFormInJson) {
  google::protobuf::Timestamp time;
  time.set_seconds(253402300799);
  EXPECT_EQ(MakeMessageTranslation()->Write(time, time).body, "\"9999-12-31T23:59:59Z\"");
  time.set_seconds(253402300800);
  const WebReply reply = MakeMessageTranslation()->Write(time, time);
  EXPECT_EQ(reply.code, 500);
  EXPECT_THAT(reply.body, HasSubstr("google.protobuf.Timestamp, has no form in JSON"));
}

class InferTranslationTest : public testing::Test {
 protected:
  absl::Status Read(const std::string& body, const std::string& json_length = "") {
    WebRequest request{.body = body, .held = std::make_shared<BudgetShare>(FairBudget(limits::kHttpBytes), "a")};
    if (!json_length.empty()) request.head.headers["inference-header-content-length"] = json_length;
    infer_.Clear();
    translation_ = MakeInferTranslation();  // one for each request
    return translation_->Read(&request, &infer_);
  }
  // One input x with these members besides.
  static std::string Body(const std::string& members, const std::string& more = "") {
    return R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32",)" + members + "}]" + more + "}";
  }
  void ExpectRefused(const std::string& body, const std::string& words, const std::string& json_length = "") {
    const absl::Status status = Read(body, json_length);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << body.substr(0, 200);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }

  std::unique_ptr<Translation> translation_ = MakeInferTranslation();
  inference::ModelInferRequest infer_;
};

TEST_F(InferTranslationTest, FlatAndNestedDataAreTheSame) {
  for (const char* data : {"[1.5,2]", "[[1.5,2]]", "[[[1.5],[2]]]"}) {
    ASSERT_TRUE(Read(Body(absl::StrCat("\"data\":", data))).ok()) << data;
    EXPECT_EQ(infer_.inputs(0).name(), "x");
    EXPECT_THAT(infer_.inputs(0).shape(), ElementsAre(1, 2));
    EXPECT_THAT(infer_.inputs(0).contents().fp32_contents(), ElementsAre(1.5f, 2.0f));
  }
}

TEST_F(InferTranslationTest, DataMayComeBeforeItsDatatype) {
  ASSERT_TRUE(Read(R"({"inputs":[{"data":[0,255],"datatype":"UINT8","name":"x","shape":[2]}]})").ok());
  EXPECT_THAT(infer_.inputs(0).contents().uint_contents(), ElementsAre(0u, 255u));
}

TEST_F(InferTranslationTest, IdOutputsAndParameters) {
  ASSERT_TRUE(
      Read(Body("\"data\":[1,2]", R"(,"id":"7","outputs":[{"name":"a"},{"name":"b","parameters":{"binary_data":true}}],
      "parameters":{"members":3,"kinds":"theta","anytime":true,"large":18446744073709551615,"half":0.5})"))
          .ok());
  EXPECT_EQ(infer_.id(), "7");
  ASSERT_EQ(infer_.outputs_size(), 2);
  EXPECT_TRUE(infer_.outputs(1).parameters().empty()) << "the binary extension is for HTTP alone";
  EXPECT_EQ(infer_.parameters().at("members").int64_param(), 3);
  EXPECT_EQ(infer_.parameters().at("kinds").string_param(), "theta");
  EXPECT_TRUE(infer_.parameters().at("anytime").bool_param());
  EXPECT_EQ(infer_.parameters().at("large").uint64_param(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(infer_.parameters().at("half").double_param(), 0.5);
}

TEST_F(InferTranslationTest, BinaryTensorsFollowTheJson) {
  const std::string head = Body(R"("parameters":{"binary_data_size":8})");
  ASSERT_TRUE(Read(head + "abcdefgh", std::to_string(head.size())).ok());
  EXPECT_THAT(infer_.raw_input_contents(), ElementsAre("abcdefgh"));
  EXPECT_TRUE(infer_.inputs(0).parameters().empty());
  ExpectRefused(head + "abc", "3 bytes are left", std::to_string(head.size()));
  ExpectRefused(head + "abcdefghi", "1 bytes after", std::to_string(head.size()));
  ExpectRefused(head, "length of the JSON", std::to_string(head.size() + 1));
  for (const char* length : {"-1", "x", "99999999999999999999"}) ExpectRefused(head, "length of the JSON", length);
  ExpectRefused(Body(R"("parameters":{"binary_data_size":-8})"), "binary_data_size");
  ExpectRefused(Body(R"("parameters":{"binary_data_size":"8"})"), "binary_data_size");
}

TEST_F(InferTranslationTest, BadJsonIsRefusedWithItsPlace) {
  for (const char* body : {"", "{", "[1,", "nonsense", "{\"inputs\": [}", "\xff\xfe", "{\"id\":\"\xff\"}"}) {
    ExpectRefused(body, "no JSON");
  }
  ExpectRefused("[]", "no JSON object");
  ExpectRefused("{\"inputs\":[\n{]", "line 2");
  ExpectRefused(Body("\"data\":[1,NaN]"), "no JSON");
  ExpectRefused(Body("\"data\":[1,1e999]"), "no JSON");
}

TEST_F(InferTranslationTest, WrongMembersAreNamed) {
  ExpectRefused(R"({"inputs":{}})", "'inputs'");
  ExpectRefused(R"({"inputs":[3]})", "'inputs'");
  ExpectRefused(R"({"inputs":[{"shape":[1],"datatype":"FP32","data":[1]}]})", "inputs[0].name is missing");
  ExpectRefused(R"({"inputs":[{"name":3}]})", "inputs[0].name is no string");
  ExpectRefused(R"({"inputs":[{"name":"x","datatype":"FP32","shape":["a"],"data":[1]}]})", "inputs[0].shape");
  ExpectRefused(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1.5],"data":[1]}]})", "1.5");
  ExpectRefused(Body(R"("data":["1",2])"), "no array of numbers in input 0");
  ExpectRefused(Body(R"("data":[{},2])"), "no array of numbers");
  ExpectRefused(Body(R"("data":3)"), "no array of numbers");
  ExpectRefused(Body(R"("data":[1e300,2])"), "range of float32");
  ExpectRefused(Body("\"data\":[1,2]", R"(,"outputs":"all")"), "'outputs'");
  ExpectRefused(Body("\"data\":[1,2]", R"(,"parameters":{"members":[1]})"), "'members'");
  ExpectRefused(R"({"inputs":[{"name":"x","shape":[1],"datatype":"UINT8","data":[256]}]})", "256");
  ExpectRefused(R"({"inputs":[{"name":"x","shape":[1],"datatype":"UINT8","data":[0.5]}]})", "0.5");
  ExpectRefused(R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT64","data":[0.5]}]})",
                "data of INT64 has the value 0.5");
  ExpectRefused(R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT32","data":[3e9]}]})",
                "data of INT32 has the value 3e+09");
  ExpectRefused(R"({"inputs":[{"name":"x","shape":[1],"datatype":"BOOL","data":[-1]}]})",
                "data of BOOL has the value -1");
  ExpectRefused(Body(R"("data":[1,true])"), "data of FP32 has true or false");
}

TEST_F(InferTranslationTest, WholeNumbersAndMasksKeepTheirTypes) {
  ASSERT_TRUE(Read(R"({"inputs":[{"name":"a","shape":[2],"datatype":"INT64","data":[-3,4]},
                                 {"name":"b","shape":[2],"datatype":"INT32","data":[5,-6]},
                                 {"name":"c","shape":[2],"datatype":"BOOL","data":[true,0]}]})")
                  .ok());
  EXPECT_EQ(infer_.inputs(0).contents().int64_contents(0), -3);
  EXPECT_EQ(infer_.inputs(1).contents().int_contents(1), -6);
  EXPECT_TRUE(infer_.inputs(2).contents().bool_contents(0));
  EXPECT_FALSE(infer_.inputs(2).contents().bool_contents(1));
}

TEST_F(InferTranslationTest, DepthAndNumberOfValuesAreBounded) {
  const std::string open(1'000'000, '['), close(1'000'000, ']');
  ExpectRefused(open + close, "deeper");
  ExpectRefused(Body("\"data\":" + open + close), "deeper");
  std::string many = "[0";
  for (int i = 0; i < limits::kJsonValues; ++i) many += ",0";
  ExpectRefused(Body("\"data\":[1,2]", ",\"more\":" + many + "]"), "values");
  EXPECT_TRUE(Read(Body("\"data\":" + many + "]")).ok()) << "elements of tensors are not counted";
}

TEST_F(InferTranslationTest, MemoryForReadingIsReserved) {
  WebRequest request{.body = Body("\"data\":[1,2]"), .held = std::make_shared<BudgetShare>(FairBudget(100), "a")};
  EXPECT_EQ(translation_->Read(&request, &infer_).code(), absl::StatusCode::kResourceExhausted);
}

class InferReplyTest : public InferTranslationTest {
 protected:
  InferReplyTest() {
    response_.set_model_name("m");
    response_.set_model_version("3");
    (*response_.mutable_parameters())["draws_used"].set_int64_param(4);
    Add<double>("mean", "FP64", {0.1, -0.0, 1e300});
    Add<float>("member_mean", "FP32", {0.1f, std::numeric_limits<float>::infinity(), std::nanf("")});
  }
  template <typename Number>
  void Add(const char* name, const char* datatype, const std::vector<Number>& values) {
    auto* const output = response_.add_outputs();
    output->set_name(name);
    output->set_datatype(datatype);
    output->add_shape(static_cast<int64_t>(values.size()));
    response_.add_raw_output_contents(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number));
  }

  inference::ModelInferResponse response_;
};

TEST_F(InferReplyTest, TextsAreStrings) {
  response_.clear_outputs();
  response_.clear_raw_output_contents();
  Add<char>("mean_probability", "BYTES", {'\3', 0, 0, 0, 'a', '"', 'b', 0, 0, 0, 0});
  ASSERT_TRUE(Read(Body("\"data\":[1,2]")).ok());
  EXPECT_EQ(json::parse(translation_->Write(infer_, response_).body)["outputs"][0]["data"], json({"a\"b", ""}));
}

TEST_F(InferReplyTest, NumbersKeepTheirBits) {
  ASSERT_TRUE(Read(Body("\"data\":[1,2]")).ok());
  const WebReply reply = translation_->Write(infer_, response_);
  const json body = json::parse(reply.body);
  EXPECT_EQ(body["model_name"], "m");
  EXPECT_EQ(body["model_version"], "3");
  EXPECT_EQ(body["parameters"]["draws_used"], 4);
  EXPECT_EQ(body["outputs"][0]["shape"], json({3}));
  EXPECT_EQ(body["outputs"][0]["data"], json({0.1, -0.0, 1e300}));
  EXPECT_EQ(body["outputs"][1]["data"][0].get<float>(), 0.1f);
  EXPECT_EQ(body["outputs"][1]["data"][1], "Infinity");
  EXPECT_EQ(body["outputs"][1]["data"][2], "NaN");
  EXPECT_EQ(reply.content_type, "application/json");
}

TEST_F(InferReplyTest, OutputsAreBinaryWhereAsked) {
  ASSERT_TRUE(Read(Body("\"data\":[1,2]",
                        R"(,"outputs":[{"name":"mean","parameters":{"binary_data":true}},{"name":"member_mean"}])"))
                  .ok());
  WebReply reply = translation_->Write(infer_, response_);
  ASSERT_EQ(reply.headers.at(0).first, "Inference-Header-Content-Length");
  const size_t length = std::stoul(reply.headers[0].second);
  json body = json::parse(reply.body.substr(0, length));
  EXPECT_EQ(body["outputs"][0]["parameters"]["binary_data_size"], 24);
  EXPECT_FALSE(body["outputs"][0].contains("data"));
  EXPECT_TRUE(body["outputs"][1].contains("data"));
  EXPECT_EQ(reply.body.substr(length), response_.raw_output_contents(0));

  ASSERT_TRUE(Read(Body("\"data\":[1,2]", R"(,"parameters":{"binary_data_output":true})")).ok());
  EXPECT_TRUE(infer_.parameters().empty());
  reply = translation_->Write(infer_, response_);
  const std::string both = response_.raw_output_contents(0) + response_.raw_output_contents(1);
  EXPECT_TRUE(reply.body.ends_with(both));

  ASSERT_TRUE(Read(Body("\"data\":[1,2]", R"(,"parameters":{"binary_data_output":true},
                        "outputs":[{"name":"mean","parameters":{"binary_data":false}},{"name":"member_mean"}])"))
                  .ok());
  reply = translation_->Write(infer_, response_);
  EXPECT_NE(reply.body.find("0.1,"), std::string::npos);
  EXPECT_TRUE(reply.body.ends_with(response_.raw_output_contents(1)));
}

}  // namespace
}  // namespace chainfleet
