// A digest of what the mappings of core/wire and of the JSON in the store make of many random values. A rewrite of the
// mappings must keep every digest, since peers and stored rows would see the difference. A new field of the contract
// changes the digests of the messages that have it; nothing else may.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/store/draw_codec/sha256.h"
#include "core/store/state_store/record_json.h"
#include "server/control/trace_table.h"
#include "server/control/views.h"
#include "server/predict/evaluation/evaluation.h"
#include "server/predict/evaluation/row_reader.h"
#include "tests/core/wire/mapped_messages.h"

namespace chainfleet {
namespace {

constexpr uint64_t kValues = 20'000;  // for each message; every other one lacks a third of its fields

// By message: of the values' bytes and JSON, and of what the store writes of those that it keeps.
const std::map<std::string, std::string>& Digests() {
  static const auto* const digests = new std::map<std::string, std::string>{
      {"ChainId", "ece62910b9eac3343b79f6236b5438d6948edf62c95ede8c2ca58e52d1e12600"},
      {"BlobRef", "d55517b92ee3c2d51297630a43f3b737a114e9ec6b98604ce5cead7c7312bc77"},
      {"Segment", "7cf6a89019bf2e9fb501aad0fb9e2abf81a8cc55a5407ed03b6ebfc790b7c9b4"},
      {"SegmentRecord", "37077edbafadca6ab905c4d0f39129935b2d369a7233174a13ce6319e4f2e9ad"},
      {"ResumePoint", "5628ca8ae7c602d1635a8e58e5572c1d7ec88a7433f605c9f4d9b9a8d4aef388"},
      {"ResumeProof", "7735f90ac5657edfff4f147edc5ba54e32c124c926ef060097d965e46f4ca6b7"},
      {"ChainStats", "e4570100f033fa73752a384f7fcf1481ea23db8a46aa247515eb2a0400d0b37d"},
      {"Normalisation", "26c95de22201033c733221fa8f6b4188fccbe3070847702ca544a392b57c3f98"},
      {"TargetUnits", "3d2667db507612fdbc907e0d4030e04ff15111d8085bf89d1d05f1073c5dd332"},
      {"StoredModel", "d3b9cbd0af248165973f06551ee8ff99853dd30e9191c5cbfddfbd232566af13"},
      {"Dataset", "101a37e3c5a1983e3f00d5397cc0bb3227a2e552f7806e6a770bfc853fe41783"},
      {"Timestamp", "1b20877800ae78ad3707a925b79720279dff4cb59cd40c329ce7bca399436b91"},
      {"JobSpec", "35fe10ea252b8313637531898b62196e724ba9f747d7a7c31144b3cf738aad1c"},
      {"SynchronizeRequest", "7daa212a3994568a33a40c6b16146cb1eb302acfe1e3eb87064ae0ddd657d53d"},
      {"SynchronizeReply", "6810ba0dfe0325f62b1e07d85b08a944ac067aa7ed1883bd7ff246eeaebf4202"},
      {"JobPlan", "762d5edd97a28fae4ac38e1e406ffddfaef0f2c978bfd3e346b100cbb237bd17"},
      {"CommitProgressRequest", "a2b34c980faeb3182fe558fb7c1bb110493bd723df4bcdbfc7e12f34313e4361"},
      {"Tensor", "6028b412ed333cc8476977b50af2fe8f72f0906db0b0b012661f6a5a15f7a224"},
      {"ShardRequest", "6e721a7fe5660692658316fca6f3feccb4fd9206af1d0af11e2c5bbbe652e528"},
      {"ShardResult", "5784c2ea1371d12a0f6431c5c67348a14c1fddba781e0c17d308fe4bf60a31bd"},
      {"PredictResponse", "31cc81386ef6db5531f53930f04aed46967de2d4c8ae477914c05fde5c6ede6f"},
      {"Evaluation", "cf7e21fc93f79f082b6bd7b6d3292a5a012dc0b2de7fd604d8e020eb1a45f09c"},
      {"chainfleet.v1.Chain", "bb215dcad6945cc4468fb8c9b3cb9720819f31bb28e3cedb98e6760190017b61"},
      {"chainfleet.v1.Traces.Chain", "bb7ef65e07bc19d52807f4ba761fe096be65b5f1a2ae33c4be8d539b508694a7"},
      {"chainfleet.v1.Job.Diagnostic", "d9cb7cdbc4dc4de39dd34748d5f1c02b884806f615939ea01365feeb4bc8e72d"},
      {"chainfleet.v1.DatasetRowValues", "59788519d88ee89e6915495ad22a7b1af86fb50e7c418f3b6ecce9ebf6727eee"},
      {"chainfleet.v1.DrawSelection", "1b6ac2c0bcf3b2028e081df27ad1db74ba17984f34eddbddea3757b19fd66e64"},
      {"chainfleet.v1.EvaluateRequest", "846bf60ea021437c74cdebb5349a899cf0a73b49da86b0e75284b556a4b22e01"},
  };
  return *digests;
}

void ExpectGolden(const std::string& name, const std::string& found) {
  const auto golden = Digests().find(name);
  ASSERT_NE(golden, Digests().end()) << "{\"" << name << "\", \"" << found << "\"},";
  EXPECT_EQ(found, golden->second) << name;
}

std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);  // maps in the order of their keys
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// Takes away about a third of what is set, at every depth.
void Thin(google::protobuf::Message* message, RandomMessage* random) {
  const google::protobuf::Reflection* const reflection = message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> set;
  reflection->ListFields(*message, &set);
  for (const auto* field : set) {
    if (random->Below(3) == 0) {
      reflection->ClearField(message, field);
    } else if (field->cpp_type() == field->CPPTYPE_MESSAGE && !field->is_map()) {
      const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
      for (int i = 0; i < count; ++i) {
        Thin(field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                  : reflection->MutableMessage(message, field),
             random);
      }
    }
  }
}

// Keys in their order, as those of a map have none.
std::string Json(const google::protobuf::Message& message) {
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(message, &json).ok());
  return nlohmann::json::parse(json).dump();
}

std::string Stored(const JobPlan& plan) { return EncodeRecord(plan); }
std::string Stored(const Dataset& dataset) { return EncodeRecord(dataset); }
std::string Stored(const StoredModel& model) { return EncodeRecord(model); }
std::string Stored(const SegmentRecord& record) { return EncodeRecord(record); }
std::string Stored(const BlobRef& ref) { return EncodeRecord(ref); }
std::string Stored(const ResumeProof& proof) { return EncodeRecord(proof); }
template <typename Value>
std::string Stored(const Value&) {
  return "";
}

template <typename Message>
class GoldenCorpus : public ::testing::Test {};
TYPED_TEST_SUITE(GoldenCorpus, MappedMessages);

TYPED_TEST(GoldenCorpus, IsWhatItWas) {
  Sha256 digest;
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= kValues; ++seed) {
    auto message = MappedMessage<TypeParam>(seed);
    RandomMessage random(seed);
    if (seed % 2 == 0) Thin(&message, &random);
    KeepOneSort(&message);
    const auto value = AsStatusOr(FromProto(message));
    if (!value.ok()) {
      ++refused;
      digest.UpdateString("refused");
      continue;
    }
    const auto mapped = ToProto(*value);
    digest.UpdateString(Bytes(mapped));
    digest.UpdateString(Json(mapped));
    digest.UpdateString(Stored(*value));
  }
  EXPECT_LT(refused, kValues * 2 / 3);
  ExpectGolden(TypeParam::descriptor()->name(), digest.Hex());
}

// A mapping of which the product has one direction, by the fields that its value lists.
template <typename M, typename V>
struct OneWay {
  using Message = M;
  using Value = V;
};

template <typename Mapping>
class GoldenFields : public ::testing::Test {};
using OneWays = ::testing::Types<OneWay<v1::Chain, ChainView>, OneWay<v1::Traces::Chain, TracedChain>,
                                 OneWay<v1::Job::Diagnostic, Diagnostic>, OneWay<v1::DatasetRowValues, RowValues>,
                                 OneWay<v1::DrawSelection, DrawQuery>, OneWay<v1::EvaluateRequest, EvaluateQuery>>;
TYPED_TEST_SUITE(GoldenFields, OneWays);

template <typename Value, typename Message>
absl::StatusOr<Value> Read(const Message& message) {
  if constexpr (!std::is_same_v<Value, RowValues>) {
    return Parsed<Value>(message);
  } else {
    RowValues rows{.shape = {message.shape().begin(), message.shape().end()}, .inputs = message.inputs()};
    if (message.shape_size() % 2 == 0) {
      rows.targets = std::vector<int32_t>(message.labels().begin(), message.labels().end());
    } else {
      rows.targets = std::vector<float>(message.targets().begin(), message.targets().end());
    }
    return rows;
  }
}

TYPED_TEST(GoldenFields, AreWhatTheyWere) {
  using Message = typename TypeParam::Message;
  Sha256 digest;
  for (uint64_t seed = 1; seed <= kValues; ++seed) {
    RandomMessage random(seed);
    auto message = random.Make<Message>();
    if (seed % 2 == 0) Thin(&message, &random);
    const auto value = Read<typename TypeParam::Value>(message);
    if (!value.ok()) {
      digest.UpdateString("refused");
      continue;
    }
    const auto mapped = Written<Message>(*value);
    digest.UpdateString(Bytes(mapped));
    digest.UpdateString(Json(mapped));
  }
  ExpectGolden(Message::descriptor()->full_name(), digest.Hex());
}

}  // namespace
}  // namespace chainfleet
