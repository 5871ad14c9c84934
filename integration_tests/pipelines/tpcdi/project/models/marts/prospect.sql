{{ config(unique_key='agency_id') }}
select
    p.agency_id, p.first_name, p.last_name, p.address_line1, p.postal_code, p.gender, p.income, p.number_cars,
    p.number_children, p.age, p.credit_rating, p.own_or_rent, p.net_worth,
    c.customer_id is not null as is_customer,
    concat(
        case when p.net_worth > 1000000 or p.income > 200000 then '+HighValue' else '' end,
        case when p.number_children > 3 or p.number_cars > 3 then '+Expenses' else '' end,
        case when p.age > 45 then '+Boomer' else '' end,
        case when p.income < 50000 or p.credit_rating < 600 or p.net_worth < 100000 then '+MoneyAlert' else '' end,
        case when p.age < 25 and p.income > 50000 then '+Inherited' else '' end
    ) as marketing_nameplate
from {{ source('raw', 'prospect') }} p
left join (
    select agency_id, min(customer_id) as customer_id
    from {{ ref('dim_customer') }}
    where is_current and status = 'ACTIVE'
    group by agency_id
) c on c.agency_id = p.agency_id
