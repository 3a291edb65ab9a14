#pragma once
// Azure Blob Storage: the account, its address, and the authorization: an account key (SharedKey),
// a shared access signature, or none.

#include <string>

#include "engine/store/cloud/config_file.h"
#include "engine/store/http/http_client.h"
#include "engine/store/http/query.h"
#include "engine/store/store.h"
#include "engine/store/store_environment.h"

namespace batchfs {

struct AzurePlace {
  std::string account;
  std::string container;
  std::string prefix;    // of all keys, no slash at either end; may be empty
  std::string endpoint;  // of the account's blob service, no slash at the end
  std::string key;       // the account key's bytes; empty: none
  QueryParameters sas;   // empty: none
  MissingAnswers missing = MissingAnswers::find_out;  // the service answers 404 for missing objects
  bool is_anonymous() const { return key.empty() && sas.empty(); }
};

/// `url` is one of
///   az://CONTAINER/PREFIX        (the account comes from the environment or the settings)
///   az://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX
///   abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX        (also abfss)
/// and may end with a shared access signature ("?sv=…&sig=…"). Sources of authorization, in this
/// order: that signature; AZURE_STORAGE_CONNECTION_STRING; AZURE_STORAGE_ACCOUNT_KEY;
/// AZURE_STORAGE_SAS_TOKEN; the settings. Throws invalid_argument; never repeats a secret.
AzurePlace resolve_azure_place(const std::string& url, const StoreConfig& config,
                               const StoreEnvironment& environment, const ConfigFile& settings);

/// The value of the Authorization header. A body is sent with its length.
/// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key (version
/// 2015-02-21 and later)
std::string azure_shared_key(const HttpRequest& request, const std::string& account,
                             const std::string& key);

}  // namespace batchfs
