# Payloads above 16 KiB, and revisions of the configuration.

locals {
  payload_prefix       = "payloads/"
  configuration_prefix = "config/"
}

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV_AWS_18:only the functions read and write it, under names that the ledger and its audit hold; CloudTrail data events serve whoever needs more
  #checkov:skip=CKV_AWS_144:the ledger is regional as well; a payload alone in another region would deliver nothing
  #checkov:skip=CKV2_AWS_62:nothing is triggered by an object

  bucket        = "${local.name}-${local.account}-${local.region}"
  force_destroy = !var.keep_data
  tags          = local.tags
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket                  = aws_s3_bucket.this.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    bucket_key_enabled = true # one KMS request for many objects

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = local.kms_key_arn
    }
  }
}

# Objects are written once and never changed; versions are a net under a mistaken deletion.
resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    id     = "payloads"
    status = "Enabled"

    filter {
      prefix = local.payload_prefix
    }

    expiration {
      days = var.payload_days
    }
  }

  # Configuration revisions have no expiration: every attempt names the one under which it ran.
  rule {
    id     = "leftovers"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = 7
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }

  lifecycle {
    precondition {
      condition     = var.payload_days >= var.longest_window_days
      error_message = "payload_days is ${var.payload_days}, longest_window_days ${var.longest_window_days}: payloads would be gone before the last attempt that needs them."
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_policy" "tls_only" {
  count = local.emulated ? 0 : 1 # an emulator speaks plain HTTP

  bucket = aws_s3_bucket.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TlsOnly"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.this.arn, "${aws_s3_bucket.this.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.this]
}
