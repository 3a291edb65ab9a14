#pragma once
// batchfs's own settings for object stores: the defaults for missing options and environment
// variables.
//
//   {"s3":    {"endpoint": "https://…", "region": "…", "profile": "…", "requester_pays": true,
//              "path_style": true, "access_key_id": "…", "secret_access_key": "…",
//              "session_token": "…"},
//    "gcs":   {"endpoint": "https://…", "credentials_file": "…", "billing_project": "…"},
//    "azure": {"endpoint": "https://…", "account": "…", "account_key": "…", "sas_token": "…",
//              "connection_string": "…"}}

#include <map>
#include <string>

#include "engine/store/store_environment.h"

namespace batchfs {

class ConfigFile {
 public:
  /// Reads BATCHFS_CONFIG, else batchfs/config.json in XDG_CONFIG_HOME or ~/.config. No file: no
  /// settings. Throws not_found when BATCHFS_CONFIG names none, invalid_argument for unknown
  /// settings, access_denied when it holds secrets and others can read it.
  explicit ConfigFile(const StoreEnvironment& environment);

  /// Empty when not set.
  std::string text(const std::string& service, const std::string& setting) const;
  bool flag(const std::string& service, const std::string& setting) const;

 private:
  std::map<std::string, std::string> settings_;  // "s3.region"; flags are "true"
};

}  // namespace batchfs
