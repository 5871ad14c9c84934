{#- By Spark's timestampadd: dbt-spark's arithmetic drops fractions of seconds, and adds no milliseconds at all. -#}
{%- macro tablestore__dateadd(datepart, interval, from_date_or_timestamp) -%}
  timestampadd({{ datepart }}, cast({{ interval }} as int), to_timestamp({{ from_date_or_timestamp }}))
{%- endmacro -%}


{#- dbt-spark looks for six digits in the text of a time, and casts what it finds: an error in ANSI mode without them. -#}
{%- macro tablestore__datediff(first_date, second_date, datepart) -%}
  {%- if datepart == 'microsecond' -%}
    timestampdiff(microsecond, to_timestamp({{ first_date }}), to_timestamp({{ second_date }}))
  {%- else -%}
    {{ spark__datediff(first_date, second_date, datepart) }}
  {%- endif -%}
{%- endmacro -%}
