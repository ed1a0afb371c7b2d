"""Session values in Redis or Valkey; needs `pagefile[redis]`."""

from pagefile.stores.redis.sessions import RedisOptions, RedisSessions

__all__ = ["RedisOptions", "RedisSessions"]
