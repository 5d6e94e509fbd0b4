#include "server/rpc/gateway/openapi.h"

#include <google/protobuf/descriptor.h>

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/version.h"
#include "nlohmann/json.hpp"
#include "server/rpc/gateway/routes.h"

namespace chainfleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

Json Reference(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

// A message of the Open Inference Protocol is written by PlainJson, any other by protobuf's JSON mapping.
bool IsPlain(const Descriptor& type) { return type.file()->package() == "inference"; }

Json WholeNumber(const FieldDescriptor& field) {
  const bool is_wide =
      field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 || field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  if (is_wide && !IsPlain(*field.containing_type())) return {{"type", "string"}, {"format", field.cpp_type_name()}};
  return {{"type", "integer"}};
}

Json EnumSchema(const google::protobuf::EnumDescriptor& type) {
  Json names = Json::array();
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return {{"type", "string"}, {"enum", names}};
}

// `needed` gets the messages that the schema refers to.
Json ValueSchema(const FieldDescriptor& field, std::set<const Descriptor*>* needed) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return {{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:  // a number that is not finite is a string
      return {{"oneOf", {{{"type", "number"}}, {{"type", "string"}, {"enum", {"NaN", "Infinity", "-Infinity"}}}}}};
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumSchema(*field.enum_type());
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.type() == FieldDescriptor::TYPE_BYTES) return {{"type", "string"}, {"format", "byte"}};
      return {{"type", "string"}};
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (field.message_type()->full_name() == "google.protobuf.Timestamp") {
        return {{"type", "string"}, {"format", "date-time"}};
      }
      needed->insert(field.message_type());
      return Reference(field.message_type()->full_name());
    default:
      return WholeNumber(field);
  }
}

Json FieldSchema(const FieldDescriptor& field, std::set<const Descriptor*>* needed) {
  if (field.is_map()) {
    return {{"type", "object"}, {"additionalProperties", ValueSchema(*field.message_type()->map_value(), needed)}};
  }
  if (field.is_repeated()) return {{"type", "array"}, {"items", ValueSchema(field, needed)}};
  return ValueSchema(field, needed);
}

Json MessageSchema(const Descriptor& type, std::set<const Descriptor*>* needed) {
  Json properties = Json::object();
  for (int i = 0; i < type.field_count(); ++i) {
    if (IsPlain(type) && type.field(i)->type() == FieldDescriptor::TYPE_BYTES) continue;
    properties[type.field(i)->name()] = FieldSchema(*type.field(i), needed);
  }
  return {{"type", "object"}, {"properties", properties}};
}

Json Content(const Json& schema) { return {{"application/json", {{"schema", schema}}}}; }

// The fields that the path names, and also those of the query unless the body has them.
Json ParametersOf(const Route& route) {
  const Descriptor& request = RequestOf(route);
  const bool has_query = !HasBody(route) || MethodOf(route).client_streaming();
  Json parameters = Json::array();
  std::set<std::string> in_path;
  const std::vector<std::string> segments = absl::StrSplit(route.path, '/');
  for (const std::string& segment : segments) {
    if (segment.starts_with('{')) in_path.insert(segment.substr(1, segment.size() - 2));
  }
  std::set<const Descriptor*> unused;
  for (int i = 0; i < request.field_count(); ++i) {
    const FieldDescriptor& field = *request.field(i);
    const bool is_in_path = in_path.contains(field.name());
    const bool is_in_query = has_query && field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
    if (!is_in_path && !is_in_query) continue;
    parameters.push_back({{"name", field.name()},
                          {"in", is_in_path ? "path" : "query"},
                          {"required", is_in_path},
                          {"schema", FieldSchema(field, &unused)}});
  }
  return parameters;
}

Json BytesContent() { return {{"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}}; }

Json Operation(const Route& route, std::set<const Descriptor*>* needed) {
  const google::protobuf::MethodDescriptor& method = MethodOf(route);
  std::string id = absl::StrCat(route.verb, route.path);  // a method may have several paths
  for (char& c : id) c = absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  Json operation = {{"operationId", id}, {"summary", method.name()}, {"tags", {method.service()->name()}}};
  operation["parameters"] = ParametersOf(route);
  if (method.client_streaming()) {
    operation["requestBody"] = {{"content", BytesContent()}};
  } else if (HasBody(route)) {
    needed->insert(method.input_type());
    operation["requestBody"] = {{"content", Content(Reference(method.input_type()->full_name()))}};
  }
  Json content = BytesContent();
  if (route.translate != MakeBytesTranslation) {
    needed->insert(method.output_type());
    content = Content(Reference(method.output_type()->full_name()));
    if (method.server_streaming()) content = {{"text/event-stream", content["application/json"]}};
  }
  operation["responses"] = {{"200", {{"description", "OK"}, {"content", content}}},
                            {"default", {{"description", "An error"}, {"content", Content(Reference("Error"))}}}};
  return operation;
}

// The descriptors do not describe the JSON that infer_translation.cc reads and writes.
void SetInferSchemas(Json* schemas) {
  const Json text = {{"type", "string"}}, object = {{"type", "object"}},
             array = {{"type", "array"}, {"items", Json::object()}};
  const Json tensor = {{"type", "object"},
                       {"required", {"name", "shape", "datatype"}},
                       {"properties",
                        {{"name", text},
                         {"shape", {{"type", "array"}, {"items", {{"type", "integer"}}}}},
                         {"datatype", text},
                         {"parameters", object},
                         {"data", array}}}};
  const Json tensors = {{"type", "array"}, {"items", tensor}};
  const Json output = {
      {"type", "object"}, {"required", {"name"}}, {"properties", {{"name", text}, {"parameters", object}}}};
  (*schemas)["inference.ModelInferRequest"] = {{"type", "object"},
                                               {"required", {"inputs"}},
                                               {"properties",
                                                {{"id", text},
                                                 {"parameters", object},
                                                 {"inputs", tensors},
                                                 {"outputs", {{"type", "array"}, {"items", output}}}}}};
  (*schemas)["inference.ModelInferResponse"] = {
      {"type", "object"},
      {"required", {"model_name", "outputs"}},
      {"properties",
       {{"model_name", text}, {"model_version", text}, {"id", text}, {"parameters", object}, {"outputs", tensors}}}};
  (*schemas)["inference.RepositoryIndexResponse"] = {
      {"type", "array"}, {"items", Reference("inference.RepositoryIndexResponse.ModelIndex")}};
  (*schemas)["inference.ModelConfigResponse"] = Reference("inference.ModelConfig");
  (*schemas)["Error"] = {
      {"type", "object"},
      {"required", {"error"}},
      {"properties", {{"error", text}, {"code", text}, {"reason", text}, {"fields", array}, {"request_id", text}}}};
}

std::string MakeDocument() {
  Json paths = Json::object(), schemas = Json::object();
  std::set<const Descriptor*> needed;
  for (const Route& route : Routes()) {
    paths[route.path][absl::AsciiStrToLower(route.verb)] = Operation(route, &needed);
  }
  for (bool is_new = true; is_new;) {
    is_new = false;
    const std::set<const Descriptor*> known = needed;
    for (const Descriptor* type : known) {
      if (schemas.contains(type->full_name())) continue;
      is_new = true;
      schemas[type->full_name()] = MessageSchema(*type, &needed);
    }
  }
  SetInferSchemas(&schemas);
  const Json document = {
      {"openapi", "3.0.3"},
      {"info", {{"title", "chainfleet"}, {"version", kVersion}}},
      {"paths", paths},
      {"components",
       {{"schemas", schemas}, {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
      {"security", Json::array({{{"token", Json::array()}}, Json::object()})}};
  return document.dump();
}

}  // namespace

const std::string& OpenApiDocument() {
  static const auto* const kDocument = new std::string(MakeDocument());
  return *kDocument;
}

}  // namespace chainfleet
