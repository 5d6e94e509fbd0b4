#include "core/store/state_store/postgres_uri.h"

#include <gmock/gmock.h>

namespace chainfleet {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PostgresUri, IsReadWithAPasswordThatIsEncoded) {
  for (const char* uri : {"postgresql://u:p%25zz%2Fss%40x@host:5432/db?connect_timeout=3", "postgres://u@h1:1,h2:2/db",
                          "postgresql:///db?host=/run/postgresql&user=u&password=a%25b", "postgresql://[::1]:5433",
                          "postgresql://u:a:b@h", "host=h user=u password='p%zz/@'"}) {
    EXPECT_TRUE(CheckPostgresUri(uri).ok()) << uri;
  }
}

TEST(PostgresUri, IsRefusedWithoutAWordOfAPasswordThatIsNotEncoded) {
  for (const char* uri : {"postgresql://u:p%zz@host/db", "postgresql://u:pa/zz@host/db", "postgresql://u:12/zz@host/db",
                          "postgresql://u:pa?zz@host/db", "postgresql://u:p@zz@host/db", "postgresql://u:zz/db",
                          "postgresql://u:zz", "postgresql://u@h/db?password=p%zz", "postgresql://u:zz[@h/db?zz"}) {
    const absl::Status status = CheckPostgresUri(uri);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << uri;
    EXPECT_THAT(status.message(), Not(HasSubstr("zz"))) << uri;
    EXPECT_THAT(status.message(), HasSubstr("%25")) << uri;
  }
}

TEST(PostgresUri, HasAPasswordWhereverItIsWritten) {
  for (const char* uri : {"postgresql://u:p@host/db", "postgres://h/db?user=u&password=p", "host=h password=p",
                          "postgresql://u@h/db?sslkey=k&sslpassword=p"}) {
    EXPECT_TRUE(HasPassword(uri)) << uri;
  }
  for (const char* uri : {"postgresql://u@host:5432/db?sslmode=require", "postgresql:///db", "postgresql://u@h/db?x"}) {
    EXPECT_FALSE(HasPassword(uri)) << uri;
  }
}

}  // namespace
}  // namespace chainfleet
