#pragma once
// Profiles of the AWS command line: ~/.aws/credentials and ~/.aws/config.
// https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html

#include <map>
#include <string>

#include "engine/store/store_environment.h"

namespace batchfs {

struct AwsProfile {
  std::string name;
  bool exists = false;
  /// Settings of both files; the credentials file wins. An indented setting is
  /// "s3.addressing_style".
  std::map<std::string, std::string> settings;

  /// Empty when absent.
  std::string get(const std::string& setting) const;
};

/// `name`, else AWS_PROFILE, else "default"; the files are those of AWS_SHARED_CREDENTIALS_FILE and
/// AWS_CONFIG_FILE, else those of the home directory. Throws not_found when a profile was named and
/// is in neither file.
AwsProfile read_aws_profile(const StoreEnvironment& environment, const std::string& name);

}  // namespace batchfs
