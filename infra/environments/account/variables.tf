# The settings that most environments differ in; the module has more, described in its variables.tf.

variable "environment" {
  description = "Which environment this is: \"production\", \"staging\"."
  type        = string
}

variable "family" {
  description = "The event family that has these queues to itself."
  type        = string
  default     = "events"
}

variable "architecture" {
  description = "arm64 (cheaper) or x86_64."
  type        = string
  default     = "arm64"
}

variable "keep_data" {
  description = "Whether table and bucket refuse to be deleted."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags on everything."
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

variable "secrets_kms_key_arns" {
  description = "Customer keys under which those secrets are encrypted."
  type        = list(string)
  default     = []
}

variable "maximum_concurrency" {
  description = "The most consumers at once."
  type        = number
  default     = 20
}

variable "operator_tenants" {
  description = "Tenants that have operators of their own: a policy for each."
  type        = set(string)
  default     = []
}

variable "slo" {
  description = "Service-level objectives that the alarms derive from: the module's objectives.tf describes them."
  type        = map(number)
  default     = {}
}

variable "destinations" {
  description = "Destinations with metrics = true, and their owners: alarms of their own."
  type        = map(object({ owner = string }))
  default     = {}
}

variable "page_topic_arn" {
  description = "The SNS topic for what must be looked at now; one is made if absent."
  type        = string
  default     = null
}

variable "review_topic_arn" {
  description = "The SNS topic for what can wait until the morning; one is made if absent."
  type        = string
  default     = null
}
