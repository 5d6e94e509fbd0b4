#include "core/store/blob_store/s3_reply.h"

#include <pugixml.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace chainfleet {
namespace {

absl::Status Unreadable(const std::string& what) {
  return absl::InternalError(absl::StrCat("S3 answered with something else than ", what, ": is this an S3 server?"));
}

}  // namespace

S3Error ReadS3Error(const std::string& body) {
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size())) return {};
  const pugi::xml_node error = document.child("Error");
  return {error.child_value("Code"), error.child_value("Message")};
}

absl::StatusOr<S3Listing> ReadS3Listing(const std::string& body) {
  pugi::xml_document document;
  const bool parsed = document.load_buffer(body.data(), body.size());
  const pugi::xml_node result = document.child("ListBucketResult");
  if (!parsed || !result) return Unreadable("a list of objects");
  S3Listing listing;
  for (const pugi::xml_node object : result.children("Contents")) listing.keys.push_back(object.child_value("Key"));
  if (result.child("IsTruncated").text().as_bool()) {
    listing.continuation_token = result.child_value("NextContinuationToken");
    if (listing.continuation_token.empty()) return Unreadable("a list that can be continued");
  }
  return listing;
}

absl::StatusOr<std::string> ReadS3UploadId(const std::string& body) {
  pugi::xml_document document;
  const bool parsed = document.load_buffer(body.data(), body.size());
  const std::string id = document.child("InitiateMultipartUploadResult").child_value("UploadId");
  if (!parsed || id.empty()) return Unreadable("the id of a multipart upload");
  return id;
}

std::string S3PartList(const std::vector<std::string>& etags) {
  pugi::xml_document document;
  pugi::xml_node list = document.append_child("CompleteMultipartUpload");
  for (size_t i = 0; i < etags.size(); ++i) {
    pugi::xml_node part = list.append_child("Part");
    part.append_child("PartNumber").text().set(static_cast<unsigned>(i + 1));
    part.append_child("ETag").text().set(etags[i].c_str());
  }
  std::ostringstream text;
  document.save(text, "", pugi::format_raw | pugi::format_no_declaration);
  return text.str();
}

}  // namespace chainfleet
