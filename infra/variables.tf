# --- what it is -------------------------------------------------------------------------------

variable "environment" {
  description = "Which environment this is, as part of every name: \"production\", \"staging\"."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,11}$", var.environment))
    error_message = "environment: 1 to 12 of a-z, 0-9 and -, beginning with a letter."
  }
}

variable "family" {
  description = "The event family that has these queues to itself, as part of every name."
  type        = string
  default     = "events"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,11}$", var.family))
    error_message = "family: 1 to 12 of a-z, 0-9 and -, beginning with a letter."
  }
}

variable "tags" {
  description = "Tags on everything, beside application, environment and family."
  type        = map(string)
  default     = {}
}

# --- functions --------------------------------------------------------------------------------

variable "packages" {
  description = "Where the functions' zips are, as `make package` leaves them."
  type = object({
    ingest     = string
    consumer   = string
    reconciler = string
  })
}

variable "architecture" {
  description = "What the zips were built for: arm64 (cheaper) or x86_64."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture: arm64 or x86_64."
  }
}

variable "memory_mb" {
  description = "Memory of each function; Lambda gives CPU in proportion."
  type        = number
  default     = 512

  validation {
    condition     = var.memory_mb >= 128 && var.memory_mb <= 10240
    error_message = "memory_mb: 128 to 10240."
  }
}

variable "consumer_timeout_s" {
  description = "How long one batch may take. Leave room for the longest timeout of a destination."
  type        = number
  default     = 60

  validation {
    condition     = var.consumer_timeout_s >= 1 && var.consumer_timeout_s <= 900
    error_message = "consumer_timeout_s: 1 to 900."
  }
}

variable "ingest_timeout_s" {
  description = "How long one publish may take. The HTTP API itself gives up after 30 s."
  type        = number
  default     = 15

  validation {
    condition     = var.ingest_timeout_s >= 1 && var.ingest_timeout_s <= 29
    error_message = "ingest_timeout_s: 1 to 29, below the 30 s of an HTTP API."
  }
}

variable "reconciler_timeout_s" {
  description = "How long one look of the reconciler may take. It runs every minute, and twice at once is safe."
  type        = number
  default     = 60

  validation {
    condition     = var.reconciler_timeout_s >= 1 && var.reconciler_timeout_s <= 900
    error_message = "reconciler_timeout_s: 1 to 900."
  }
}

variable "allow_recursion" {
  description = "Whether Lambda's recursion detection is told that this loop is meant: a retry is a fresh message to the consumer's own queue, and Lambda would stop it after some 16 rounds. Attempts are bounded by the ledger. false only where the API is missing (emulators)."
  type        = bool
  default     = true
}

variable "function_environment" {
  description = "Further environment variables of all three functions, such as RUST_LOG. No secrets: refer to them with ssm: or secretsmanager: instead."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.function_environment) : !startswith(name, "WAYBILL_")])
    error_message = "function_environment: names that begin with WAYBILL_ are set by this module."
  }
}

variable "log_retention_days" {
  description = "How long logs are kept. The evidence of deliveries is in the ledger, not in them."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days: one of the values that CloudWatch Logs knows, such as 7, 30, 90 or 365."
  }
}

# --- queues -----------------------------------------------------------------------------------

variable "batch_size" {
  description = "The most messages in one invocation of the consumer; they run concurrently."
  type        = number
  default     = 10

  validation {
    condition     = var.batch_size >= 1 && var.batch_size <= 10000
    error_message = "batch_size: 1 to 10000."
  }
}

variable "batching_window_s" {
  description = "How long Lambda may wait to fill a batch. 0 delivers at once; Lambda wants at least 1 where a batch has more than 10."
  type        = number
  default     = 0

  validation {
    condition     = var.batching_window_s >= 0 && var.batching_window_s <= 300
    error_message = "batching_window_s: 0 to 300."
  }
}

variable "maximum_concurrency" {
  description = "The most consumers at once: the global limit on concurrent deliveries is this times batch_size."
  type        = number
  default     = 20

  validation {
    condition     = var.maximum_concurrency >= 2 && var.maximum_concurrency <= 1000
    error_message = "maximum_concurrency: 2 to 1000, the range that SQS event source mappings accept."
  }
}

variable "visibility_timeout_s" {
  description = "How long a received message is hidden. Absent: 6 times the consumer's timeout plus the batching window, the least that the plan accepts."
  type        = number
  default     = null

  validation {
    condition     = var.visibility_timeout_s == null ? true : var.visibility_timeout_s >= 0 && var.visibility_timeout_s <= 43200
    error_message = "visibility_timeout_s: 0 to 43200."
  }
}

variable "max_receive_count" {
  description = "How often a message may be received without being acknowledged before SQS itself moves it. For functions that cannot even start: attempts are counted in the ledger."
  type        = number
  default     = 6

  validation {
    condition     = var.max_receive_count >= 2 && var.max_receive_count <= 1000
    error_message = "max_receive_count: 2 to 1000; with 1, a single throttled poll would dead-letter a message."
  }
}

variable "queue_retention_s" {
  description = "How long the main queue keeps a message. Long waits are parked in the ledger, so this only spans an outage of the consumer."
  type        = number
  default     = 345600

  validation {
    condition     = var.queue_retention_s >= 60 && var.queue_retention_s <= 1209600
    error_message = "queue_retention_s: 60 to 1209600."
  }
}

variable "dead_letter_retention_s" {
  description = "How long the dead-letter queue keeps a message. A message that SQS moves keeps its age, so this must be longer than the main queue's."
  type        = number
  default     = 1209600

  validation {
    condition     = var.dead_letter_retention_s >= 60 && var.dead_letter_retention_s <= 1209600
    error_message = "dead_letter_retention_s: 60 to 1209600."
  }
}

variable "kms_data_key_reuse_s" {
  description = "How long SQS reuses a data key before it asks KMS for a new one."
  type        = number
  default     = 300

  validation {
    condition     = var.kms_data_key_reuse_s >= 60 && var.kms_data_key_reuse_s <= 86400
    error_message = "kms_data_key_reuse_s: 60 to 86400."
  }
}

# --- what is kept -----------------------------------------------------------------------------

variable "longest_window_days" {
  description = "The longest time from publish to the last attempt that anybody may ask for: the longest deadline or horizon in the configuration, and the time within which dead letters are redriven."
  type        = number
  default     = 30

  validation {
    condition     = var.longest_window_days >= 1
    error_message = "longest_window_days: at least 1."
  }
}

variable "payload_days" {
  description = "How long the bucket keeps a payload. At least the longest window: without its payload a delivery cannot be sent."
  type        = number
  default     = 90

  validation {
    condition     = var.payload_days >= 1
    error_message = "payload_days: at least 1."
  }
}

variable "point_in_time_recovery" {
  description = "Whether the ledger can be restored to any second of the last 35 days. false only where the API is missing (emulators)."
  type        = bool
  default     = true
}

variable "keep_data" {
  description = "Whether the table refuses to be deleted and the bucket refuses to be deleted while it holds something. Set to false, apply, and then destroy."
  type        = bool
  default     = true
}

variable "kms_key_arn" {
  description = "The KMS key for queues, table, bucket and logs. Absent: a key of its own is made. Its policy must let CloudWatch Logs use it, and CloudWatch's alarms where their topics are made here."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null ? true : can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/", var.kms_key_arn))
    error_message = "kms_key_arn: the ARN of a key, not of an alias."
  }
}

# --- secrets ----------------------------------------------------------------------------------

variable "producer_secrets" {
  description = "ARNs of SSM parameters and Secrets Manager secrets that ingest may read: tokens and signing secrets of producers and sources."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.producer_secrets : can(regex("^arn:[a-z-]+:(ssm:[a-z0-9-]+:[0-9]{12}:parameter/|secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:)[^*]+$", arn))])
    error_message = "producer_secrets: whole ARNs of SSM parameters or Secrets Manager secrets, without *."
  }
}

variable "recipient_secrets" {
  description = "ARNs of SSM parameters and Secrets Manager secrets that the consumer may read: signing secrets and header values of destinations."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.recipient_secrets : can(regex("^arn:[a-z-]+:(ssm:[a-z0-9-]+:[0-9]{12}:parameter/|secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:)[^*]+$", arn))])
    error_message = "recipient_secrets: whole ARNs of SSM parameters or Secrets Manager secrets, without *."
  }
}

variable "secrets_kms_key_arns" {
  description = "Customer keys, beside the module's, under which those secrets are encrypted."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.secrets_kms_key_arns : can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[^*]+$", arn))])
    error_message = "secrets_kms_key_arns: whole ARNs of keys, without *."
  }
}

variable "permissions_boundary" {
  description = "A permissions boundary for every role, where the account asks for one."
  type        = string
  default     = null
}

# --- ingest -----------------------------------------------------------------------------------

variable "ingest_rate_per_s" {
  description = "Requests per second that the HTTP API lets through; above it answers 429."
  type        = number
  default     = 500

  validation {
    condition     = var.ingest_rate_per_s >= 1
    error_message = "ingest_rate_per_s: at least 1."
  }
}

variable "ingest_burst" {
  description = "Requests that the HTTP API lets through at once."
  type        = number
  default     = 1000

  validation {
    condition     = var.ingest_burst >= 1
    error_message = "ingest_burst: at least 1."
  }
}

variable "operator_tenants" {
  description = "Tenants that have operators of their own: for each, a policy that holds whoever has it to this tenant. A policy across tenants is made in any case."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for tenant in var.operator_tenants : can(regex("^[A-Za-z0-9._-]{1,64}$", tenant))])
    error_message = "operator_tenants: each 1 to 64 of A-Z a-z 0-9 . _ -"
  }
}

# --- local development ------------------------------------------------------------------------

variable "emulator" {
  description = "Only for an emulator of AWS on this machine, absent on AWS. Lets the functions send to http and loopback addresses, and puts a function URL in front of ingest where there is no HTTP API. Functions in containers are told the emulator's address by itself: loopback is another machine there."
  type = object({
    endpoint_url = string
    function_url = optional(bool, false)
    containers   = optional(bool, false)
  })
  default = null

  validation {
    condition     = var.emulator == null ? true : can(regex("^http://(127\\.[0-9]+\\.[0-9]+\\.[0-9]+|localhost|\\[::1\\])(:[0-9]+)?/?$", var.emulator.endpoint_url))
    error_message = "emulator.endpoint_url: an http URL on a loopback address. The functions trust it to mean that nothing here is production."
  }
}
