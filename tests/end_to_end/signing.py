"""Signs as the senders of webhooks do: with their own packages where there are any."""

import hashlib
import hmac
import time
from datetime import datetime, timezone

import stripe
from standardwebhooks.webhooks import Webhook


def standard_webhooks(secret, body, message="msg_1", at=None):
    at = int(time.time()) if at is None else at
    signature = Webhook(secret).sign(message, datetime.fromtimestamp(at, tz=timezone.utc), body.decode())
    return {"webhook-id": message, "webhook-timestamp": str(at), "webhook-signature": signature}


def of_stripe(secret, body, at=None):
    at = int(time.time()) if at is None else at
    signature = stripe.WebhookSignature._compute_signature(f"{at}.{body.decode()}", secret)
    header = f"t={at},v1={signature}"
    # Stripe's own verification is content with it.
    stripe.WebhookSignature.verify_header(body.decode(), header, secret, tolerance=None)
    return {"stripe-signature": header}


def of_github(secret, body, delivery="d-1", event="push"):
    """By the rule in GitHub's documentation, "Validating webhook deliveries"; they have no package."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"x-hub-signature-256": f"sha256={signature}", "x-github-delivery": delivery, "x-github-event": event}


def of_slack(secret, body, at=None):
    """By the rule in Slack's documentation, "Verifying requests from Slack"."""
    at = int(time.time()) if at is None else at
    signature = hmac.new(secret.encode(), f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
    return {"x-slack-signature": f"v0={signature}", "x-slack-request-timestamp": str(at)}
