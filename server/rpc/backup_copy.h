// A call of AccessService.Backup.
#pragma once

#include <memory>

#include "chainfleet/v1/access.pb.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/services.h"

namespace chainfleet {

// Copies the state and lists its objects, tells the client, and keeps the copies and all objects until the stream ends.
// `id` names their folder. Needs space for the copies in the data directory. Blocks. Errors of the database and of the
// disk end the stream.
void ServeBackup(const ServiceParts& parts, const std::string& id,
                 const std::shared_ptr<StreamFeed<v1::BackupCopy>>& feed);

}  // namespace chainfleet
