#include "core/wire/parsed_bytes.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "chainfleet/v1/jobs.pb.h"
#include "chainfleet/v1/predict.pb.h"
#include "chainfleet/v1/worker.pb.h"
#include "inference/grpc_service.pb.h"
#include "tests/core/wire/random_message.h"

namespace chainfleet {
namespace {

using google::protobuf::Message;

// The bytes that the parser of `empty` takes for `wire`.
int64_t SpaceOf(const std::string& wire, const Message& empty) {
  const std::unique_ptr<Message> parsed(empty.New());
  EXPECT_TRUE(parsed->ParseFromString(wire));
  return static_cast<int64_t>(parsed->SpaceUsedLong());
}

// `most`: how many times the space the estimate may be.
void ExpectCovers(const std::string& wire, const Message& empty, double most) {
  const int64_t bytes = ParsedBytes(*empty.GetDescriptor(), wire);
  const int64_t space = SpaceOf(wire, empty);
  EXPECT_GE(bytes, space);
  EXPECT_LE(static_cast<double>(bytes), most * static_cast<double>(space));
  google::protobuf::io::ArrayInputStream pieces(wire.data(), static_cast<int>(wire.size()), 7);
  EXPECT_EQ(ParsedBytes(*empty.GetDescriptor(), &pieces), bytes) << "in pieces of 7 bytes";
}

std::string Repeated(const std::string& field) {
  std::string wire;
  for (int i = 0; i < 10'000; ++i) wire += field;
  return wire;
}

TEST(ParsedBytes, CoversMessagesInsideOthers) {
  const inference::ModelInferRequest empty;
  ExpectCovers(Repeated({0x2a, 0}), empty, 2);
  inference::ModelInferRequest named;
  for (int i = 0; i < 1000; ++i) {
    named.add_inputs()->set_name("a name that no small string has room for");
    (*named.mutable_inputs(i)->mutable_parameters())["binary_data_size"].set_int64_param(i);
  }
  ExpectCovers(named.SerializeAsString(), empty, 3);
  v1::CreateJobRequest job;
  for (int i = 0; i < 1000; ++i) job.mutable_spec()->mutable_model()->add_layers();
  ExpectCovers(job.SerializeAsString(), job, 3);
}

TEST(ParsedBytes, CoversNumbersThatTakeMoreMemoryThanWire) {
  v1::ReadRowsRequest rows;
  for (int i = 0; i < 100'000; ++i) rows.add_rows(i % 300);
  ExpectCovers(rows.SerializeAsString(), rows, 3);
  inference::ModelInferRequest request;
  auto* const contents = request.add_inputs()->mutable_contents();
  for (int i = 0; i < 50'000; ++i) {
    contents->add_int_contents(-i);
    contents->add_fp32_contents(0.5f);
    contents->add_bool_contents(true);
    contents->add_bytes_contents("x");
  }
  ExpectCovers(request.SerializeAsString(), request, 3);
}

TEST(ParsedBytes, CoversFieldsThatTheMessageDoesNotKnow) {
  const inference::ModelInferRequest empty;
  const std::string number = {'\xf8', '\x3f', 1}, group = {'\xfb', '\x3f', '\xfc', '\x3f'},
                    text = {'\xfa', '\x3f', 1, 'x'};
  ExpectCovers(Repeated(number), empty, 3);
  ExpectCovers(Repeated(group), empty, 3);
  ExpectCovers(Repeated(text), empty, 3);
  const std::string name_as_number = {0x08, 1};
  ExpectCovers(Repeated(name_as_number), empty, 3);
}

template <typename Request>
void ExpectCoversRandom() {
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const std::string wire = RandomMessage(seed).Make<Request>().SerializeAsString();
    EXPECT_GE(ParsedBytes(*Request::descriptor(), wire), SpaceOf(wire, Request())) << "seed " << seed;
  }
}

TEST(ParsedBytes, CoversEveryFieldOfLargeRequests) {
  ExpectCoversRandom<v1::CreateJobRequest>();
  ExpectCoversRandom<v1::PredictRequest>();
  ExpectCoversRandom<v1::EvaluateRequest>();
  ExpectCoversRandom<v1::SynchronizeRequest>();
  ExpectCoversRandom<v1::CommitProgressRequest>();
  ExpectCoversRandom<v1::ShardUpdate>();
}

TEST(ParsedBytes, ChargesLongValuesLittleMoreThanTheirBytes) {
  inference::ModelInferRequest request;
  request.set_model_name("job");
  request.add_inputs()->add_shape(1000);
  request.add_raw_input_contents(std::string(1 << 20, 'x'));
  const int64_t bytes = ParsedBytes(*request.GetDescriptor(), request.SerializeAsString());
  EXPECT_LT(bytes, (1 << 20) * 101 / 100);
}

TEST(ParsedBytes, StopsWhereThereIsTooMuch) {
  const std::string wire = Repeated({0x2a, 0});
  google::protobuf::io::ArrayInputStream stream(wire.data(), static_cast<int>(wire.size()));
  const int64_t bytes = ParsedBytes(*inference::ModelInferRequest::descriptor(), &stream, 10'000);
  EXPECT_GT(bytes, 10'000);
  EXPECT_LT(bytes, 12'000);
}

TEST(ParsedBytes, ReadsAMalformedMessageUpToItsFault) {
  const google::protobuf::Descriptor& type = *inference::ModelInferRequest::descriptor();
  const std::string tensors = Repeated({0x2a, 0});
  const std::string cut = {0x2a, 100, 1}, end_of_no_group = {'\xfc', '\x3f'}, no_field = {0, 0};
  for (const std::string& fault : {cut, end_of_no_group, no_field}) {
    EXPECT_GE(ParsedBytes(type, tensors + fault), ParsedBytes(type, tensors));
  }
  EXPECT_LT(ParsedBytes(type, "\x0a\xff\xff\xff\x7f"), 1 << 20) << "a name that would be long";
  EXPECT_LT(ParsedBytes(type, std::string(100'000, '\xfb')), 1 << 20) << "a parser reads only so deep";
}

}  // namespace
}  // namespace chainfleet
