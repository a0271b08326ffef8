variable "endpoint_url" {
  description = "Where the emulator listens, on a loopback address."
  type        = string
  default     = "http://127.0.0.1:4566"
}

variable "packages" {
  description = "The folder with ingest.zip, consumer.zip and reconciler.zip."
  type        = string
}

variable "architecture" {
  description = "What the zips were built for: this machine's."
  type        = string
  default     = "x86_64"
}

variable "function_environment" {
  description = "Further environment variables of the functions, such as the secrets behind env: references of a trial configuration."
  type        = map(string)
  default     = {}
}

variable "producer_secrets" {
  description = "ARNs of the secrets that ingest may read."
  type        = list(string)
  default     = []
}

variable "recipient_secrets" {
  description = "ARNs of the secrets that the consumer may read."
  type        = list(string)
  default     = []
}

variable "operator_tenants" {
  description = "Tenants that have operators of their own: a policy for each."
  type        = set(string)
  default     = []
}

variable "consumer_timeout_s" {
  description = "As on AWS. Tests shorten it: the visibility timeout, for which they wait, is 6 times it."
  type        = number
  default     = 60
}

variable "max_receive_count" {
  description = "As on AWS. Tests lower it for the same reason."
  type        = number
  default     = 6
}

variable "maximum_concurrency" {
  description = "The most consumers at once."
  type        = number
  default     = 4
}

variable "allow_recursion" {
  description = "false where the emulator does not know recursion configurations."
  type        = bool
  default     = true
}

variable "point_in_time_recovery" {
  description = "false where the emulator does not know point-in-time recovery."
  type        = bool
  default     = true
}

variable "function_url" {
  description = "Whether a function URL stands in for the HTTP API."
  type        = bool
  default     = false
}

variable "functions_in_containers" {
  description = "Whether the emulator runs functions in containers of their own (LocalStack) and not on this machine."
  type        = bool
  default     = false
}

variable "alarms" {
  description = "Whether alarms, topics and dashboard are made: false where the emulator lacks them."
  type        = bool
  default     = true
}

variable "log_queries" {
  description = "true where the emulator knows PutQueryDefinition; MiniStack does not."
  type        = bool
  default     = false
}
